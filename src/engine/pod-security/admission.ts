import { isEqual } from '../verdict/json-patch.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { isSameLevel, levelText, PRIVILEGED } from './level.ts';
import type { LevelVersion } from './level.ts';
import { policyOf } from './namespace-labels.ts';
import type { NamespacePolicy } from './namespace-labels.ts';
import { Pod, readPod } from '../pods/pod.ts';
import type { PodSecuritySettings } from './settings.ts';
import type { ShapeFault } from '../values/json-shape.ts';
import { describeViolations, violationsOf } from './standards.ts';
import type { StandardsViolation } from './standards.ts';
import { isChecked, isPod, pathPrefix, podResourceOf, templateIn } from '../pods/pod-resource.ts';
import type { PodResource } from '../pods/pod-resource.ts';
import { textOf } from '../../values/index.ts';

/** Verdict on one request, with the violations behind it. */
export interface PodSecurityVerdict {
  readonly accepted: boolean;
  /** Reason of a denial: `violates PodSecurity "restricted:latest": …`. */
  readonly message?: string;
  /** 403 for a violation, 400 for an invalid admission request. */
  readonly code?: number;
  readonly warnings: readonly string[];
  /** Keys of Kubernetes' admission plugin: `enforce-policy`, `audit-violations`, `exempt`, `error`. */
  readonly auditAnnotations: Readonly<Record<string, string>>;
  /** Violations of the first of enforce, audit and warn that has any. Paths are relative to the request's object. */
  readonly violations: readonly StandardsViolation[];
}

const FORBIDDEN = 403;
const BAD_REQUEST = 400;

const CHECKED_OPERATIONS: readonly unknown[] = ['CREATE', 'UPDATE'];
const OTHER_OPERATIONS: readonly unknown[] = ['DELETE', 'CONNECT'];

/**
 * Checks an admission request like Kubernetes' admission plugin. `request` is any JSON, nested at most MAX_NESTING deep
 * (json-text.ts). `namespaceLabels` are those of the request's namespace, and override the settings. Never throws.
 */
export function checkPodSecurity(
  request: unknown,
  settings: PodSecuritySettings,
  namespaceLabels?: Readonly<Record<string, string>>,
): PodSecurityVerdict {
  if (!isJsonObject(request)) {
    return refused('expected an admission request, got other JSON');
  }
  const resource = podResourceOf(request);
  if (resource === null) {
    return refused('expected an admission request with a resource or a kind, got neither');
  }
  if (resource === undefined || OTHER_OPERATIONS.includes(request.operation)) {
    return accepted();
  }
  if (!CHECKED_OPERATIONS.includes(request.operation)) {
    return refused('expected the operation CREATE, UPDATE, DELETE or CONNECT, got another');
  }
  if (!isChecked(resource, textOf(request.subResource))) {
    return accepted();
  }
  const exemption = exemptionOf(request, settings);
  return exemption === undefined
    ? checkRequest(request, resource, settings, policyOf(settings, namespaceLabels))
    : accepted({ exempt: exemption });
}

function exemptionOf({ namespace, userInfo }: JsonObject, { exemptions }: PodSecuritySettings): string | undefined {
  if (exemptions.namespaces.has(textOf(namespace))) {
    return 'namespace';
  }
  return isJsonObject(userInfo) && exemptions.usernames.has(textOf(userInfo.username)) ? 'user' : undefined;
}

function checkRequest(
  request: JsonObject,
  resource: PodResource,
  settings: PodSecuritySettings,
  policy: NamespacePolicy,
): PodSecurityVerdict {
  const template = templateIn(request.object, resource);
  const isEnforced =
    isPod(resource) || (settings.workloads === 'enforce' && !keepsTemplate(request, resource, template));
  if (policy.labelError === undefined && isFullyPrivileged(policy, isEnforced)) {
    return accepted(isPod(resource) ? { 'enforce-policy': levelText(PRIVILEGED) } : {});
  }
  if (template === undefined && resource.isTemplateOptional && isJsonObject(request.object)) {
    return accepted();
  }
  const pod = readPod(template, pathPrefix(resource));
  if (pod instanceof Pod) {
    if (isPod(resource) && request.operation === 'UPDATE' && !isSignificant(pod, readPod(request.oldObject))) {
      return accepted();
    }
    if (settings.exemptions.runtimeClasses.has(pod.spec.runtimeClassName ?? '')) {
      return accepted({ exempt: 'runtimeClass' });
    }
  }
  return verdictOn(pod, policy, isEnforced);
}

/** Whether the template is unchanged: existing workloads can always be scaled, and their finalizers removed. */
function keepsTemplate({ operation, oldObject }: JsonObject, resource: PodResource, template: unknown): boolean {
  const oldTemplate = templateIn(oldObject, resource);
  return (
    operation === 'UPDATE' &&
    template !== undefined &&
    oldTemplate !== undefined &&
    isEqual(template as JsonValue, oldTemplate as JsonValue)
  );
}

function isFullyPrivileged({ enforce, audit, warn }: NamespacePolicy, isEnforced: boolean): boolean {
  return [...(isEnforced ? [enforce] : []), audit, warn].every(({ level }) => level === 'privileged');
}

/**
 * Whether an update of a pod needs a check. API servers allow few changes of a pod: images, and additional ephemeral
 * containers.
 */
function isSignificant(pod: Pod, oldPod: Pod | ShapeFault): boolean {
  if (!(oldPod instanceof Pod)) {
    return true;
  }
  const changesImage = (list: 'containers' | 'initContainers'): boolean => {
    const [containers, oldContainers] = [pod.spec[list] ?? [], oldPod.spec[list] ?? []];
    return (
      containers.length !== oldContainers.length ||
      containers.some(({ image }, index) => (image ?? '') !== (oldContainers[index]?.image ?? ''))
    );
  };
  if (changesImage('containers') || changesImage('initContainers')) {
    return true;
  }
  const oldImages = new Map(
    (oldPod.spec.ephemeralContainers ?? []).toReversed().map(({ name, image }) => [name ?? '', image ?? '']),
  );
  return (pod.spec.ephemeralContainers ?? []).some(({ name, image }) => oldImages.get(name ?? '') !== (image ?? ''));
}

function verdictOn(pod: Pod | ShapeFault, policy: NamespacePolicy, isEnforced: boolean): PodSecurityVerdict {
  const { enforce, audit, warn, labelError } = policy;
  const known: { readonly level: LevelVersion; readonly violations: readonly StandardsViolation[] }[] = [];
  const violationsAt = (level: LevelVersion): readonly StandardsViolation[] => {
    const same = known.find((one) => isSameLevel(one.level, level));
    const violations = same?.violations ?? violationsOf(level, pod);
    known.push({ level, violations });
    return violations;
  };
  const enforced = isEnforced ? violationsAt(enforce) : [];
  const audited = violationsAt(audit);
  const isAccepted = enforced.length === 0;
  const warned = isAccepted ? violationsAt(warn) : [];
  return {
    accepted: isAccepted,
    ...(isAccepted ? {} : { message: `violates ${violationText(enforce, enforced)}`, code: FORBIDDEN }),
    warnings: warned.length === 0 ? [] : [`would violate ${violationText(warn, warned)}`],
    auditAnnotations: {
      ...(labelError === undefined ? {} : { error: `Failed to parse policy: ${labelError}` }),
      ...(isEnforced ? { 'enforce-policy': levelText(enforce) } : {}),
      ...(audited.length === 0 ? {} : { 'audit-violations': `would violate ${violationText(audit, audited)}` }),
    },
    violations: [enforced, audited, warned].find(({ length }) => length > 0) ?? [],
  };
}

function violationText(level: LevelVersion, violations: readonly StandardsViolation[]): string {
  return `PodSecurity "${levelText(level)}": ${describeViolations(violations)}`;
}

function accepted(auditAnnotations: Readonly<Record<string, string>> = {}): PodSecurityVerdict {
  return { accepted: true, warnings: [], auditAnnotations, violations: [] };
}

function refused(message: string): PodSecurityVerdict {
  return { accepted: false, message, code: BAD_REQUEST, warnings: [], auditAnnotations: {}, violations: [] };
}
