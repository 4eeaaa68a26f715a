// Replaces objects (k8s.io/apiserver, pkg/registry/generic/registry/store.go, Update).
import { ApiError } from '../../../cluster/index.ts';
import type { JsonObject, KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { isSameJson } from '../../../resources/structured-merge/index.ts';
import { keepManagerTimes } from '../../server-side-apply/track-update.ts';
import { requireNamespace } from './namespace-lifecycle.ts';
import { objectOfSubresource } from './object-reads.ts';
import { countGeneration, isDeletable, restoreReadOnlyFields, VERSION_REQUIRED } from './write-rules.ts';
import { admissionRequest, prepareKind, mutate, requireValid, isStillPrepared, trackFields } from './write-steps.ts';
import { onWarningOf } from './write.ts';
import type { Write } from './write.ts';

/** The message of API servers for a stale resourceVersion. */
const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/**
 * Replaces an object. Returns the stored one when nothing changes, and undefined when another write came first.
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
  restoreReadOnlyFields(served, live, admitted, options.subresource);
  if (options.subresource !== undefined) {
    // Fields of the live object may lack defaults that its kind got after it was stored.
    rules.applyDefaults(admitted);
  }
  countGeneration(served, live, admitted);
  prepareKind(write, admitted, live);
  const updated = admitted;
  context.checkEscalation(caller.user, definition, updated, live);
  requireValid(write, updated, live);
  if (options.subresource === undefined) {
    definition.warnings?.(updated, live).forEach(onWarningOf(options));
  }
  const after = objectOfSubresource(served, updated, options.subresource);
  await context.admission.validate({ ...request, object: after }, onWarningOf(options), options.signal);
  if (context.store.get(collection, namespace ?? '', name) !== stored || !isStillPrepared(write, updated, live)) {
    return undefined;
  }
  const result = keepManagerTimes(live, updated);
  if (isSameJson(result as JsonObject, live as JsonObject)) {
    return stored;
  }
  if (options.dryRun === true) {
    return result;
  }
  if (isDeletable(result, live)) {
    const removed = context.store.commit([{ type: 'remove', collection, expected: stored }]);
    return removed === undefined ? undefined : result;
  }
  const object = served.stored(result as MutableObject);
  return context.store.commit([{ type: 'put', collection, object, expected: stored }])?.[0];
}

/** Checks the uid and the resourceVersion of a write. */
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
