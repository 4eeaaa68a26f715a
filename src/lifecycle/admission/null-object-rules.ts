// Compares the operations of a policy's rules with expressions of builtin:cel that fail where there is no object.
import type { NullRead } from '../../engine/index.ts';
import { type AdmissionPolicySpec, forbidden, isGroupSpec } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;
/** The operations on which API servers send no such object. */
const NULL_ON: Readonly<Record<NullRead['variable'], readonly string[]>> = {
  object: ['DELETE'],
  oldObject: ['CREATE', 'CONNECT'],
};

/** Refuses settings that reject every request; warns of those that reject every request with one of the operations. */
export function checkNullReads(
  settings: string,
  reads: readonly NullRead[],
  spec: AdmissionPolicySpec,
  findings: Findings,
): void {
  if ((spec.matchConditions ?? []).length > 0) {
    return;
  }
  const operations = operationsOf(spec.rules);
  for (const { variable, field } of reads) {
    const failing = operations.filter((operation) => NULL_ON[variable].includes(operation));
    if (failing.length === 0) {
      continue;
    }
    const names = failing.join(' and ');
    const text = `always reads a field of ${variable}, which is null on ${names}: every such request would be rejected. Read it only where ${variable} != null, or remove ${names} from the rules`;
    // The expression of a group may admit in spite of a member that fails.
    if (failing.length === operations.length && !isGroupSpec(spec)) {
      findings.reject('null-object', forbidden(`${settings}.${field}`, text));
    } else {
      findings.warn('null-object', `${settings}.${field}`, text);
    }
  }
}

function operationsOf(rules: AdmissionPolicySpec['rules']): readonly string[] {
  const named = new Set<string>(rules.flatMap(({ operations }) => operations));
  return OPERATIONS.filter((operation) => named.has('*') || named.has(operation));
}
