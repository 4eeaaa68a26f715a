// Creates objects (k8s.io/apiserver, pkg/registry/generic/registry/store.go, Create).
import { randomUUID } from 'node:crypto';
import { ApiError } from '../../../cluster/index.ts';
import { groupResourceOf, timeText } from '../../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { forbiddenError } from '../authorization/forbidden.ts';
import { generatedName } from './generated-name.ts';
import { servedResource } from './cluster-context.ts';
import { requireNamespace } from './namespace-lifecycle.ts';
import { thaw } from '../store/thaw.ts';
import { initializeStatus, countsGenerations, hideInitialState, resetStatus } from './write-rules.ts';
import { admissionRequest, prepareKind, mutate, requireValid, isStillPrepared, trackFields } from './write-steps.ts';
import { nameOf, onWarningOf } from './write.ts';
import type { Write } from './write.ts';

/** Maximum number of names to generate for an object, as in API servers. */
const MAX_NAME_ATTEMPTS = 8;

/** Creates an object that `checkFields` has accepted. */
export async function createObject(write: Write, object: MutableObject): Promise<KubernetesObject> {
  const { context, served, namespace, options, caller } = write;
  const { definition, rules } = served;
  const name = nameOf(object);
  if ((object.metadata['resourceVersion'] ?? '') !== '') {
    throw new ApiError(500, 'Unknown', 'resourceVersion should not be set on objects to be created');
  }
  requireNamespaceAndKind(write, name);
  if (namespace === undefined) {
    delete object.metadata['namespace'];
  } else {
    object.metadata['namespace'] = namespace;
  }
  initializeStatus(definition, object);
  const before = { ...object, spec: { ...(object['spec'] as object | undefined) } };
  rules.applyDefaults(object);
  hideInitialState(served, object, before);
  trackFields(write, undefined, object);
  const request = admissionRequest(write, 'CREATE', object, null);
  const admitted = await mutate(write, request, object);
  resetStatus(definition, admitted);
  // A copy for another attempt, after the generated name or an allocated address was taken meanwhile.
  const draft = name === '' || context.behaviours.has(served.collection) ? thaw(admitted) : undefined;
  let next = admitted;
  for (let takenNames = 0; ;) {
    initialise(write, next);
    if (definition.hasStatus) {
      // Defaults of the initial status, and of fields that depend on name and uid.
      rules.applyDefaults(next);
    }
    prepareKind(write, next, undefined);
    const created = next as KubernetesObject;
    context.checkEscalation(caller.user, definition, created, undefined);
    requireValid(write, created, undefined);
    definition.warnings?.(created, undefined).forEach(onWarningOf(options));
    const complete = { ...request, name: created.metadata.name ?? '', object: created };
    await context.admission.validate(complete, onWarningOf(options), options.signal);
    // The namespace may have been deleted while webhooks ran.
    requireNamespaceAndKind(write, created.metadata.name ?? '');
    if (isStillPrepared(write, created, undefined)) {
      const stored = store(write, next);
      if (stored !== undefined) {
        return stored;
      }
      takenNames += 1;
      if (name !== '' || takenNames === MAX_NAME_ATTEMPTS) {
        throw alreadyExists(write, created, name === '');
      }
    }
    next = thaw(draft ?? next);
  }
}

/** Checks that the namespace and the kind exist and are not being deleted. */
function requireNamespaceAndKind({ context, served: { definition }, namespace }: Write, name: string): void {
  requireNamespace(context, definition, namespace, name, 'CREATE');
  if (servedResource(context, definition).isTerminating) {
    throw forbiddenError(definition, name, 'create not allowed while custom resource definition is terminating');
  }
}

/** Stores the object. Undefined when the name is taken. */
function store({ context, served, options }: Write, object: MutableObject): KubernetesObject | undefined {
  const { namespace = '', name = '' } = object.metadata as { namespace?: string; name?: string };
  if (options.dryRun === true) {
    const exists = context.store.get(served.collection, namespace, name) !== undefined;
    return exists ? undefined : object;
  }
  const stored = context.store.commit([
    { type: 'put', collection: served.collection, object: served.stored(object), expected: undefined },
  ])?.[0];
  return stored === undefined ? undefined : served.inServedVersion(stored);
}

/** Sets the metadata of a new object. */
function initialise({ context, served }: Write, { metadata }: MutableObject): void {
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink', 'resourceVersion']) {
    delete metadata[field];
  }
  const { name = '', generateName } = metadata;
  if (name === '' && typeof generateName === 'string' && generateName !== '') {
    metadata['name'] = generatedName(generateName);
  }
  metadata['uid'] = randomUUID();
  metadata['creationTimestamp'] = timeText(context.now());
  delete metadata['generation'];
  if (countsGenerations(served)) {
    metadata['generation'] = 1;
  }
}

function alreadyExists({ served }: Write, object: KubernetesObject, isGenerated: boolean): ApiError {
  const name = object.metadata.name ?? '';
  if (!isGenerated) {
    return ApiError.alreadyExists(served.definition, name);
  }
  const { group, resource } = served.definition;
  return new ApiError(
    409,
    'AlreadyExists',
    `${groupResourceOf(served.definition)} "${name}" already exists, the server was not able to generate a unique name for the object`,
    { name, ...(group === '' ? {} : { group }), kind: resource, retryAfterSeconds: 1 },
  );
}
