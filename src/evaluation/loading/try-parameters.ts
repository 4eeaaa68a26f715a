import { type LoadedPolicy, type ObjectLookup, type OnUnitStart, refusedParameters } from '../../engine/index.ts';
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
  { objects, namespaces, countsMissing = false }: ParameterTrial,
  onUnitStart: OnUnitStart,
): RefusedNamespaces {
  const known = new WatchedObjects();
  for (const change of objects) {
    known.apply(change);
  }
  const lookup = countsMissing ? complete(known) : known;
  const end = performance.now() + TRIAL_MS;
  const refused: RefusedNamespace[] = [];
  let tried = 0;
  for (const namespace of namespaces) {
    if (performance.now() > end) {
      break;
    }
    tried += 1;
    for (const { unit, message, isMissing } of refusedParameters(policy, namespace, lookup, onUnitStart)) {
      if (countsMissing || !isMissing) {
        refused.push({ namespace, unit, message: shortened(message, MAX_MESSAGE_LENGTH) });
      }
    }
  }
  return { tried, refused };
}

/** A lookup to which objects that are not known do not exist. */
function complete(known: ObjectLookup): ObjectLookup {
  return {
    find: (object) => {
      const found = known.find(object);
      return found.state === 'unknown' ? { state: 'absent' } : found;
    },
  };
}
