import type { ComplianceState } from '../../resources/index.ts';

/** NonCompliant if one is, else Pending if one is, else undefined while one is not known; Compliant only if all are. */
export function worstCompliance(states: readonly (ComplianceState | undefined)[]): ComplianceState | undefined {
  const worst = (['NonCompliant', 'Pending'] as const).find((state) => states.includes(state));
  return worst ?? (states.includes(undefined) ? undefined : 'Compliant');
}
