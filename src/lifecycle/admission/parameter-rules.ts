// Checks parameters of policies beyond their schema.
import { settingsExpressionProblem } from '../../engine/index.ts';
import { dnsLabelProblems, dnsSubdomainProblems, qualifiedNameProblems } from '../../names/index.ts';
import { builtinKinds, forbidden, groupVersionOf, invalid, type PolicyParameters } from '../../resources/index.ts';
import type { Findings } from './findings.ts';
import { checkKindName } from './rights-rules.ts';

type Source = PolicyParameters['from'];

/** The policy that has the parameters, or whose member has them. */
export interface ParametersOwner {
  /** Path of the policy or member: `spec`, or `spec.policies[name]`. */
  readonly field: string;
  readonly isNamespaced: boolean;
  readonly rules: readonly { readonly operations: readonly string[] }[];
}

export function checkParameters(
  { from, notFound, overridable, settingsExpression }: PolicyParameters,
  { field, isNamespaced, rules }: ParametersOwner,
  findings: Findings,
): void {
  const at = `${field}.parameters`;
  const matchesDeletion = rules.some(({ operations }) => operations.some((one) => one === 'DELETE' || one === '*'));
  if (notFound === 'Deny' && from.resource?.namespace !== undefined && matchesDeletion) {
    const why = `while the namespace "${from.resource.namespace}" has no parameters, nothing can be deleted in others, nor these`;
    findings.warn('parameters', `${at}.notFound`, `${why}: do not match DELETE, or set notFound to Allow`);
  }
  if (from.resource !== undefined) {
    checkResource(from.resource, `${at}.from.resource`, isNamespaced, findings);
  }
  checkKeys(from.namespace?.annotations, `${at}.from.namespace.annotations`, findings);
  checkKeys(from.namespace?.labels, `${at}.from.namespace.labels`, findings);
  const problem = settingsExpressionProblem(settingsExpression, overridable);
  if (problem !== undefined) {
    findings.reject('parameters', invalid(`${at}.settingsExpression`, settingsExpression, problem));
  }
}

/** Rejects parameters beside Kubewarden, whose chart may put its definitions back: API servers then drop the field. */
export function checkSchemaOwner(
  field: string,
  { policyServer, finalizer }: { readonly policyServer: string; readonly finalizer: string | undefined },
  findings: Findings,
): void {
  if (finalizer !== undefined) {
    const why = `PolicyServer ${policyServer} has the finalizer ${finalizer} of Kubewarden's controller`;
    const risk = 'whose CustomResourceDefinitions drop the field when they are put back';
    const action = 'complete the migration, which removes the finalizer (docs/migration.md), or use settings';
    findings.reject('parameters', forbidden(`${field}.parameters`, `${why}, ${risk}: ${action}`));
  }
}

/** Whether settings are never used without parameters, so that they may be incomplete. */
export function completesSettings(parameters: PolicyParameters | undefined): boolean {
  return parameters !== undefined && parameters.notFound !== 'UseDefaults';
}

function checkResource(
  resource: NonNullable<Source['resource']>,
  at: string,
  isNamespaced: boolean,
  findings: Findings,
): void {
  const { apiVersion, kind, name, namespace } = resource;
  checkKindName(resource, 'parameters', at, findings);
  const { group } = groupVersionOf(apiVersion);
  if (isNamespaced && group === '' && kind === 'Secret') {
    const detail = 'messages of the policy could show the content of Secrets: use another kind';
    findings.reject('parameters', forbidden(`${at}.kind`, detail));
  }
  if (builtinKinds(group).some((one) => one.kind === kind && !one.namespaced)) {
    const detail = 'expected a namespaced kind, got a cluster-scoped one: put what all namespaces share in settings';
    findings.reject('parameters', invalid(`${at}.kind`, kind, detail));
  }
  findings.rejectAll(
    'parameters',
    dnsSubdomainProblems(name).map((problem) => invalid(`${at}.name`, name, problem)),
  );
  if (namespace !== undefined) {
    findings.rejectAll(
      'parameters',
      dnsLabelProblems(namespace).map((problem) => invalid(`${at}.namespace`, namespace, problem)),
    );
  }
}

function checkKeys(keys: readonly string[] = [], at: string, findings: Findings): void {
  for (const [index, key] of keys.entries()) {
    const problems = qualifiedNameProblems(key).map((problem) => invalid(`${at}[${index}]`, key, problem));
    findings.rejectAll('parameters', problems);
  }
}
