// Making an object (k8s.io/apiserver, pkg/registry/generic/registry/store.go, Create).
import { randomUUID } from 'node:crypto';
import { ApiError } from '../../cluster/index.ts';
import { groupResourceOf, timeText } from '../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';
import { forbiddenError } from './authorization/forbidden.ts';
import { generatedName } from './generated-name.ts';
import { servedResource } from './machine.ts';
import { requireNamespace } from './namespace-lifecycle.ts';
import { thaw } from './store/deep-freeze.ts';
import { beginStatus, countsGenerations, hideInitialState, resetStatus } from './write-rules.ts';
import { admissionRequest, behave, mutate, requireValid, stillHolds, trackFields } from './write-steps.ts';
import { nameOf, onWarningOf } from './write.ts';
import type { Write } from './write.ts';

/** How often another name is made when a generated one is taken; as API servers do. */
const MAX_NAME_ATTEMPTS = 8;

/** Stores a new object of which the fields are checked. */
export async function createObject(write: Write, object: MutableObject): Promise<KubernetesObject> {
  const { machine, served, namespace, options, caller } = write;
  const { definition, rules } = served;
  const name = nameOf(object);
  if ((object.metadata['resourceVersion'] ?? '') !== '') {
    throw new ApiError(500, 'Unknown', 'resourceVersion should not be set on objects to be created');
  }
  requirePlace(write, name);
  if (namespace === undefined) {
    delete object.metadata['namespace'];
  } else {
    object.metadata['namespace'] = namespace;
  }
  beginStatus(definition, object);
  const before = { ...object, spec: { ...(object['spec'] as object | undefined) } };
  rules.applyDefaults(object);
  hideInitialState(served, object, before);
  trackFields(write, undefined, object);
  const request = admissionRequest(write, 'CREATE', object, null);
  const admitted = await mutate(write, request, object);
  resetStatus(definition, admitted);
  // Names may be taken, and what is decided about the object may be no longer right: it is made from this anew then.
  const draft = name === '' || machine.behaviours.has(served.collection) ? thaw(admitted) : undefined;
  let next = admitted;
  for (let takenNames = 0; ;) {
    initialise(write, next);
    if (definition.hasStatus) {
      // The first status, and what is made of the name and the uid: kinds without a status have neither.
      rules.applyDefaults(next);
    }
    behave(write, next, undefined);
    const created = next as unknown as KubernetesObject;
    machine.checkEscalation(caller.user, definition, created, undefined);
    requireValid(write, created, undefined);
    const complete = { ...request, name: created.metadata.name ?? '', object: created };
    await machine.admission.validate(complete, onWarningOf(options), options.signal);
    // Asking webhooks takes time: nothing is stored where there is no place for it any more.
    requirePlace(write, created.metadata.name ?? '');
    if (stillHolds(write, created, undefined)) {
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

/** Makes sure that there may be such an object: its namespace and its kind are there, and are not going away. */
function requirePlace({ machine, served: { definition }, namespace }: Write, name: string): void {
  requireNamespace(machine, definition, namespace, name, 'CREATE');
  if (servedResource(machine, definition).isTerminating) {
    throw forbiddenError(definition, name, 'create not allowed while custom resource definition is terminating');
  }
}

/** Undefined when there is one of that name. */
function store({ machine, served, options }: Write, object: MutableObject): KubernetesObject | undefined {
  const { namespace = '', name = '' } = object.metadata as { namespace?: string; name?: string };
  if (options.dryRun === true) {
    const isThere = machine.store.get(served.collection, namespace, name) !== undefined;
    return isThere ? undefined : object;
  }
  const stored = machine.store.commit([
    { type: 'put', collection: served.collection, object: served.stored(object), expected: undefined },
  ])?.[0];
  return stored === undefined ? undefined : served.view(stored);
}

/** What every object gets when it is made. */
function initialise({ machine, served }: Write, { metadata }: MutableObject): void {
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink', 'resourceVersion']) {
    delete metadata[field];
  }
  const { name = '', generateName } = metadata;
  if (name === '' && typeof generateName === 'string' && generateName !== '') {
    metadata['name'] = generatedName(generateName);
  }
  metadata['uid'] = randomUUID();
  metadata['creationTimestamp'] = timeText(machine.now());
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
