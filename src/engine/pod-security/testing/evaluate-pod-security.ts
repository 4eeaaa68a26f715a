import { readPod } from '../../pods/pod.ts';
import type { Level, StandardsVersion } from '../level.ts';
import { type StandardsViolation, violationsOf } from '../standards.ts';

/** Violations of a pod, whose metadata and specification are any JSON. */
export function evaluatePodSecurity(
  level: Level,
  version: StandardsVersion,
  metadata: unknown,
  spec: unknown,
): readonly StandardsViolation[] {
  return violationsOf({ level, version }, readPod({ metadata, spec }));
}
