// Checks what policies of namespaces ask CEL's `authorizer`.
import { isGranted, type SettingsNeed } from '../../engine/index.ts';
import { forbidden } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

const CAN_I = 'kubernetes/can_i';

export interface AuthorizerScope {
  readonly policyServer: string;
  /** Patterns of the host capabilities of policies of namespaces. Undefined: not known, so nothing is refused. */
  readonly capabilities: readonly string[] | undefined;
}

/** Checks the expressions of a builtin policy of a namespace. `at` is the field of its settings. */
export function checkAuthorizerUse(
  at: string,
  needs: readonly SettingsNeed[],
  { policyServer, capabilities }: AuthorizerScope,
  findings: Findings,
): void {
  for (const { field } of needs.filter(({ right }) => right === 'authorize-account')) {
    rejectAccount(`${at}.${field}`, findings);
  }
  const use = needs.find(({ right }) => right === 'authorize');
  if (use === undefined || (capabilities !== undefined && isGranted(CAN_I, capabilities))) {
    return;
  }
  const field = `${at}.${use.field}`;
  const line = `add "${CAN_I}" to spec.namespacedPoliciesCapabilities of PolicyServer ${policyServer}`;
  if (capabilities === undefined) {
    findings.warn(
      'host-capability',
      field,
      `authorizer needs the host capability ${CAN_I}: ${line}, unless it is there`,
    );
  } else {
    const granted = capabilities.length === 0 ? 'none' : capabilities.join(', ');
    const detail = `authorizer needs a host capability that policies of namespaces may not use there: ${line} (now: ${granted})`;
    findings.reject('host-capability', forbidden(field, detail));
  }
}

/** Refuses a question about a service account: the author of the policy would learn its rights. */
export function rejectAccount(field: string, findings: Findings): void {
  const detail =
    'policies of namespaces learn only what the user of the request may do: remove the call of serviceAccount, or ask an administrator for a ClusterAdmissionPolicy';
  findings.reject('other-subject', forbidden(field, detail));
}
