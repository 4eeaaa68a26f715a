import { textOf } from '../../values/index.ts';
import type { ShapeFault } from '../values/json-shape.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import { isChecked, isPod, podResourceOf } from '../pods/pod-resource.ts';
import { violationsOf } from './check-pod.ts';
import { withDefaults, withEphemeralDefaults } from './defaults.ts';
import { Pod, readPod } from '../pods/pod.ts';
import type { PodProfileSettings } from './settings.ts';
import { violationsMessage, violationText } from './violations.ts';
import type { ProfileViolation } from './violations.ts';

/** Verdict on one request. */
export interface PodProfileVerdict {
  readonly accepted: boolean;
  readonly message?: string;
  /** 403 for a violation, 400 for an invalid admission request. */
  readonly code?: number;
  /** The pod with its defaults, if it lacked any. */
  readonly mutatedObject?: JsonObject;
}

const FORBIDDEN = 403;
const BAD_REQUEST = 400;

const ACCEPTED: PodProfileVerdict = { accepted: true };
const UNCHECKED_OPERATIONS: readonly unknown[] = ['DELETE', 'CONNECT'];
const EPHEMERAL_CONTAINERS = 'ephemeralcontainers';

/**
 * Adds the defaults of the settings to a pod, and checks the result. `request` is any JSON, nested at most MAX_NESTING
 * deep (json-text.ts). Other resources than pods are accepted. Never throws.
 */
export function applyPodProfile(request: unknown, settings: PodProfileSettings): PodProfileVerdict {
  if (!isJsonObject(request)) {
    return refused('expected an admission request, got other JSON');
  }
  const resource = podResourceOf(request);
  if (resource === null) {
    return refused('expected an admission request with a resource or a kind, got neither');
  }
  const { operation } = request;
  const isForPod = resource !== undefined && isPod(resource) && isChecked(resource, textOf(request.subResource));
  if (!isForPod || UNCHECKED_OPERATIONS.includes(operation)) {
    return ACCEPTED;
  }
  if (operation !== 'CREATE' && operation !== 'UPDATE') {
    return refused('expected the operation CREATE, UPDATE, DELETE or CONNECT, got another');
  }
  const pod = readPod(request.object);
  return pod instanceof Pod ? verdictOn(request, pod, settings) : denied([malformed(pod)]);
}

function verdictOn(request: JsonObject, pod: Pod, settings: PodProfileSettings): PodProfileVerdict {
  const isCreated = request.operation === 'CREATE';
  const oldPod = isCreated ? undefined : readPod(request.oldObject);
  const known = oldPod instanceof Pod ? oldPod : undefined;
  const mutated = isCreated ? withDefaults(pod, settings) : updated(request, pod, known, settings);
  const isMutated = mutated !== pod.object;
  const violations = newViolations(isMutated ? readPod(mutated) : pod, known, settings);
  return violations.length > 0 ? denied(violations) : { ...ACCEPTED, ...(isMutated ? { mutatedObject: mutated } : {}) };
}

/** Of a pod that exists, only additional ephemeral containers can get defaults. */
function updated(request: JsonObject, pod: Pod, known: Pod | undefined, settings: PodProfileSettings): JsonObject {
  if (textOf(request.subResource) !== EPHEMERAL_CONTAINERS) {
    return pod.object;
  }
  const names = (known?.spec.ephemeralContainers ?? []).map(({ name }) => name ?? '');
  return withEphemeralDefaults(pod, new Set(names), settings);
}

/** The violations that the pod did not have before, so that pods from before the policy can be updated, and end. */
function newViolations(
  pod: Pod | ShapeFault,
  known: Pod | undefined,
  settings: PodProfileSettings,
): readonly ProfileViolation[] {
  if (!(pod instanceof Pod)) {
    return [malformed(pod)];
  }
  const before = new Set(known === undefined ? [] : violationsOf(known, settings).map(violationText));
  return violationsOf(pod, settings).filter((violation) => !before.has(violationText(violation)));
}

function malformed({ path, problem }: ShapeFault): ProfileViolation {
  return { field: path, problem };
}

function denied(violations: readonly ProfileViolation[]): PodProfileVerdict {
  return { accepted: false, message: violationsMessage(violations), code: FORBIDDEN };
}

function refused(message: string): PodProfileVerdict {
  return { accepted: false, message, code: BAD_REQUEST };
}
