import type { Pod } from './pod.ts';

/** What a check finds wrong with a pod. Its texts are upstream's. */
export interface Finding {
  /** What is forbidden, in a word or two. */
  readonly reason: string;
  /** Who does it, and with which values. */
  readonly detail: string;
  /** Names of the containers that are at fault. Empty when only the pod is. */
  readonly containers: readonly string[];
  /** Paths of the fields to change, as `spec.containers[0].securityContext.privileged`. */
  readonly fields: readonly string[];
}

/** Nothing when the pod is fine. */
export type Judge = (pod: Pod) => Finding | undefined;

/** How a check judges from one minor version of the policy (of v1) until its next revision. */
export interface Revision {
  readonly since: number;
  readonly judge: Judge;
  /** Baseline checks that this one stands for, at the level restricted. */
  readonly overrides?: readonly string[];
}

/** One control of the Pod Security Standards. */
export interface Check {
  /** Upstream's. */
  readonly id: string;
  readonly level: 'baseline' | 'restricted';
  /** Oldest first. */
  readonly revisions: readonly [Revision, ...Revision[]];
}

/** From 1.25, what only Linux has is not asked of pods that say that they are for Windows. */
export function unlessWindows(judge: Judge): Judge {
  return (pod) => (pod.spec.os?.name === 'windows' ? undefined : judge(pod));
}

/** From 1.35, root in a user namespace of the pod's own is not root. */
export function unlessUserNamespace(judge: Judge): Judge {
  return (pod) => (pod.spec.hostUsers === false ? undefined : judge(pod));
}
