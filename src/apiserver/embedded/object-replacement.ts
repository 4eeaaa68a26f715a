// Replaces objects (k8s.io/apiserver, pkg/registry/generic/registry/store.go, Update).
import { ApiError } from '../../cluster/index.ts';
import type { JsonObject, KubernetesObject, MutableObject } from '../../resources/index.ts';
import { isSameJson } from '../../resources/structured-merge/index.ts';
import { keepManagerTimes } from '../server-side-apply/track-update.ts';
import { requireNamespace } from './namespace-lifecycle.ts';
import { subresourceView } from './object-reads.ts';
import { countGeneration, isGone, keepWhatClientsCannotChange, VERSION_REQUIRED } from './write-rules.ts';
import { admissionRequest, behave, mutate, requireValid, stillHolds, trackFields } from './write-steps.ts';
import { onWarningOf } from './write.ts';
import type { Write } from './write.ts';

/** The message of a conflict. */
const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/**
 * Stores the next version of an object, or returns the stored one when nothing changes. Undefined after a concurrent write.
 *
 * @param live `stored`, converted to the request's version
 */
export async function replaceObject(
  write: Write,
  stored: KubernetesObject,
  live: KubernetesObject,
  next: MutableObject,
): Promise<KubernetesObject | undefined> {
  const { context, served, namespace, options, caller } = write;
  const { collection, definition, rules } = served;
  const { name = '' } = live.metadata;
  requireVersion(write, live, next);
  requireNamespace(context, definition, namespace, name, 'UPDATE');
  rules.applyDefaults(next);
  trackFields(write, live, next);
  const request = admissionRequest(write, 'UPDATE', next, live);
  const admitted = await mutate(write, request, next);
  keepWhatClientsCannotChange(served, live, admitted, options.subresource);
  if (options.subresource !== undefined) {
    // Restored fields may lack defaults that are newer than the object.
    rules.applyDefaults(admitted);
  }
  countGeneration(served, live, admitted);
  behave(write, admitted, live);
  const updated = admitted;
  context.checkEscalation(caller.user, definition, updated, live);
  requireValid(write, updated, live);
  const view = subresourceView(served, updated, options.subresource);
  await context.admission.validate({ ...request, object: view }, onWarningOf(options), options.signal);
  if (context.store.get(collection, namespace ?? '', name) !== stored || !stillHolds(write, updated, live)) {
    return undefined;
  }
  const settled = keepManagerTimes(live, updated);
  if (isSameJson(settled as JsonObject, live as JsonObject)) {
    return stored;
  }
  if (options.dryRun === true) {
    return settled;
  }
  if (isGone(settled, live)) {
    const removed = context.store.commit([{ type: 'remove', collection, expected: stored }]);
    return removed === undefined ? undefined : settled;
  }
  const object = served.stored(settled as MutableObject);
  return context.store.commit([{ type: 'put', collection, object, expected: stored }])?.[0];
}

/** Checks the resourceVersion of a write, where it has one. */
function requireVersion({ served, options }: Write, live: KubernetesObject, next: MutableObject): void {
  const { definition } = served;
  const name = live.metadata.name ?? '';
  const { resourceVersion = '', uid = '' } = next.metadata as { resourceVersion?: string; uid?: string };
  if (uid !== '' && uid !== live.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid ?? ''}`;
    throw ApiError.conflict(definition, name, why);
  }
  if (resourceVersion === '') {
    const isUnconditional = definition.origin === 'builtin' && !VERSION_REQUIRED.has(served.collection);
    if (!isUnconditional && options.subresource !== 'scale') {
      throw ApiError.invalid({ group: definition.group, kind: definition.resource }, name, [
        {
          reason: 'FieldValueInvalid',
          field: 'metadata.resourceVersion',
          message: 'Invalid value: 0x0: must be specified for an update',
        },
      ]);
    }
  } else if (resourceVersion !== live.metadata.resourceVersion) {
    throw ApiError.conflict(definition, name, MODIFIED);
  }
}
