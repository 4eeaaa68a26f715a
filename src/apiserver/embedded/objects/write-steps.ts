// The steps that creations and updates have in common, in order.
import { jsonText } from '../../../go/index.ts';
import { ApiError } from '../../../cluster/index.ts';
import { invalid } from '../../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { trackUpdate } from '../../server-side-apply/track-update.ts';
import { objectOfSubresource } from './object-reads.ts';
import { received } from '../kinds/received-object.ts';
import type { AdmissionAttributes } from '../request/request.ts';
import { withScale } from './scale.ts';
import { admissionOptions, fieldManagerOf, nameOf, onWarningOf } from './write.ts';
import type { Write } from './write.ts';

/** Checks the JSON types of fields. Rejects, reports or drops unknown fields, as `fieldValidation` says. */
export function checkFields(write: Write, object: MutableObject): void {
  const { served, options, verb } = write;
  const { kind, version } = served.definition;
  const prefix = `${kind} in version "${version}" cannot be handled as a ${kind}: `;
  const errorFor = (why: string): ApiError =>
    verb === 'patch'
      ? // For a patch, the message contains the patch or its result.
        ApiError.invalid({ group: '', kind: '' }, '', [invalid('patch', write.patchText ?? jsonText(object), why)])
      : ApiError.badRequest(prefix + why);
  const problem = served.rules.decodeError(object);
  if (problem !== undefined) {
    throw errorFor(problem.startsWith(prefix) ? problem.slice(prefix.length) : problem);
  }
  const isStrict = options.fieldValidation === 'Strict';
  const unknown = isStrict ? served.rules.unknownFields(object) : served.rules.prune(object);
  if (unknown.length === 0 || options.fieldValidation === 'Ignore') {
    return;
  }
  const texts = unknown.map((path) => `unknown field "${path}"`);
  if (isStrict) {
    throw errorFor(`strict decoding error: ${texts.join(', ')}`);
  }
  for (const text of texts) {
    options.onWarning?.(text);
  }
}

/** Updates managedFields, except for apply, which has updated them already. */
export function trackFields(write: Write, live: KubernetesObject | undefined, next: MutableObject): void {
  const { context, served, options, verb } = write;
  if (verb === 'apply') {
    return;
  }
  const { metadata } = trackUpdate({
    live,
    updated: next,
    definition: served.definition,
    subresource: options.subresource ?? '',
    manager: fieldManagerOf(write),
    now: context.now(),
    schemaOf: (apiVersion) => context.registry.findKind(apiVersion, served.definition.kind)?.definition.schema(),
  });
  if (metadata.managedFields === undefined) {
    delete next.metadata['managedFields'];
  } else {
    next.metadata['managedFields'] = metadata.managedFields;
  }
}

export function admissionRequest(
  write: Write,
  operation: 'CREATE' | 'UPDATE',
  object: MutableObject,
  oldObject: KubernetesObject | null,
): AdmissionAttributes {
  const { served, namespace, options, caller } = write;
  return {
    user: caller.user,
    operation,
    definition: served.definition,
    subresource: options.subresource,
    namespace: namespace ?? (served.collection === 'namespaces' ? nameOf(object) : undefined),
    name: nameOf(object),
    object: objectOfSubresource(served, object, options.subresource),
    oldObject: oldObject === null ? null : objectOfSubresource(served, oldObject, options.subresource),
    dryRun: options.dryRun === true,
    options: admissionOptions(write, operation),
  };
}

/** Runs mutating admission. Returns the mutated object; for a mutated Scale, the object with its replicas. */
export async function mutate(
  write: Write,
  request: AdmissionAttributes,
  object: MutableObject,
): Promise<MutableObject> {
  const { context, served, options } = write;
  const admitted = await context.admission.mutate(request, onWarningOf(options), options.signal);
  if (admitted === null || admitted === request.object) {
    return object;
  }
  const copy = received(admitted);
  const { scale } = served.definition;
  if (options.subresource === 'scale' && scale !== undefined) {
    return withScale(object, scale, copy);
  }
  const problem = served.rules.decodeError(copy);
  if (problem !== undefined) {
    throw ApiError.internal(problem);
  }
  served.rules.prune(copy);
  served.rules.applyDefaults(copy);
  return copy;
}

/** Runs `prepare` of the kind's behaviour, if it has one. */
export function prepareKind(
  { context, served, options }: Write,
  object: MutableObject,
  old: KubernetesObject | undefined,
): void {
  context.behaviours.get(served.collection)?.prepare({ object, old, subresource: options.subresource });
}

/** Whether the result of {@link prepareKind} is still valid after other writes. */
export function isStillPrepared(
  { context, served }: Write,
  object: KubernetesObject,
  old: KubernetesObject | undefined,
): boolean {
  return context.behaviours.get(served.collection)?.stillHolds(object, old) ?? true;
}

export function requireValid({ served }: Write, object: KubernetesObject, old: KubernetesObject | undefined): void {
  const errors = served.rules.errors(object, old);
  if (errors.length > 0) {
    throw ApiError.invalid(served.definition, object.metadata.name ?? '', errors);
  }
}
