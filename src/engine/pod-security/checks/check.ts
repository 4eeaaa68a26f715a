import type { Pod } from '../../pods/pod.ts';

/** A violation that a check found in a pod, with the texts of Kubernetes' admission plugin. */
export interface PodSecurityFinding {
  /** What is forbidden, in a word or two. */
  readonly reason: string;
  /** The pod or containers, and the forbidden values. */
  readonly detail: string;
  /** Names of violating containers. Empty when only the pod itself violates. */
  readonly containers: readonly string[];
  /** Paths of the fields to change, as `spec.containers[0].securityContext.privileged`. */
  readonly fields: readonly string[];
}

/** Undefined when the pod passes. */
export type CheckPod = (pod: Pod) => PodSecurityFinding | undefined;

/** A version of a check, from a minor version of Kubernetes (1.x) until the next revision. */
export interface Revision {
  readonly since: number;
  readonly check: CheckPod;
  /** Baseline checks that this one replaces at the level restricted. */
  readonly overrides?: readonly string[];
}

/** One control of the Pod Security Standards. */
export interface PodSecurityCheck {
  /** The id in Kubernetes' admission plugin. */
  readonly id: string;
  readonly level: 'baseline' | 'restricted';
  /** Oldest first. */
  readonly revisions: readonly [Revision, ...Revision[]];
}

/** Since 1.25, checks of Linux features do not apply to Windows pods. */
export function unlessWindows(check: CheckPod): CheckPod {
  return (pod) => (pod.isWindows ? undefined : check(pod));
}

/** Since 1.35, some checks do not apply to pods with their own user namespace. */
export function unlessUserNamespace(check: CheckPod): CheckPod {
  return (pod) => (pod.spec.hostUsers === false ? undefined : check(pod));
}
