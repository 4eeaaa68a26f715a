import { type LoadedPolicy, type OnUnitStart, refusedParameters } from '../../engine/index.ts';
import { shortened } from '../../values/index.ts';
import { WatchedObjects } from '../watched-objects.ts';
import type { ParameterTrial, RefusedNamespace, RefusedNamespaces } from './load-request.ts';

/** Characters of a message about one namespace: there may be thousands. */
const MAX_MESSAGE_LENGTH = 256;
/**
 * Time of a trial: a WebAssembly policy validates the settings of 3,500 namespaces in about a second. The namespaces that are
 * left are not tried. Milliseconds.
 */
const TRIAL_MS = 10_000;

/** Tries a policy with the parameters that exist. */
export function tryParameters(
  policy: LoadedPolicy,
  { objects, namespaces }: ParameterTrial,
  onUnitStart: OnUnitStart,
): RefusedNamespaces {
  const known = new WatchedObjects();
  for (const change of objects) {
    known.apply(change);
  }
  const end = performance.now() + TRIAL_MS;
  const refused: RefusedNamespace[] = [];
  let tried = 0;
  for (const namespace of namespaces) {
    if (performance.now() > end) {
      break;
    }
    tried += 1;
    const message = refusedParameters(policy, namespace, known, onUnitStart);
    if (message !== undefined) {
      refused.push({ namespace, message: shortened(message, MAX_MESSAGE_LENGTH) });
    }
  }
  return { tried, refused };
}
