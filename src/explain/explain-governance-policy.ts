// Why a governance policy, or one template of it, is pending or not compliant.
import {
  dependencyFindings,
  type GraphPolicy,
  type PendingExplanation,
  type PolicyGraph,
  type PolicyManifest,
  requirementText,
  RIGHTS_ROLE,
} from '../governance/index.ts';
import { type Condition, findCondition, type ObjectKey, READY, type TemplateDetails } from '../resources/index.ts';
import type { Asked, Explanation, RootCause } from './explanation.ts';
import { toDoAboutGovernance } from './governance-reasons.ts';
import { describeText, governanceSteps } from './governance-steps.ts';
import type { TemplateReadiness } from './template-readiness.ts';

/** A policy, or one template of it. */
export interface GovernanceSubject {
  readonly key: Required<ObjectKey>;
  readonly template: string | undefined;
}

/** What is known about a policy besides the Policies themselves. */
export interface GovernanceFacts {
  /** What the subject waits for. */
  readonly pending: PendingExplanation;
  /** Texts of rights that the governance account lacks. */
  readonly lacking: readonly string[];
  /** Of the templates that are explained. */
  readonly readiness: readonly TemplateReadiness[];
}

export function explainGovernancePolicy(
  { key, template }: GovernanceSubject,
  policies: PolicyGraph,
  { pending, lacking, readiness }: GovernanceFacts,
  { program }: Asked,
): Explanation {
  const { graph, roots, copies } = policies;
  const policy = `${key.namespace}/${key.name}`;
  const root = roots.get(policy);
  const copy = copies.get(`${key.namespace}.${key.name}`);
  const details = (copy?.status?.details ?? []).filter((one) => template === undefined || nameOf(one) === template);
  const compliant = template === undefined ? root?.status?.compliant : details[0]?.compliant;
  const isIgnored = compliant === 'Compliant' && pending.rootCauses.length > 0;
  const unsettled = readiness.flatMap(unsettledOf);
  const failing = details.filter((one) => one.compliant === 'NonCompliant' && one.pending === undefined);
  const summary = root?.status?.message ?? '';
  const isHidden = pending.rootCauses.some(({ reason }) => reason === 'Forbidden');
  const reasons = [
    ...notAppliedText(policy, root),
    ...revisionText(policy, root),
    // The controller may read what the user may not.
    ...(isHidden && summary !== '' ? [`policy ${policy}: ${summary}.`] : []),
    ...findingTexts(policies, key, pending),
    ...(pending.rootCauses.length === 0 ? [] : pending.sentences),
    ...(isIgnored ? ['ignorePending is true: what waits counts as Compliant, and nothing has to be done.'] : []),
    ...failing.map((one) => `${nameOf(one)} reports: ${one.history?.[0]?.message ?? 'nothing'}`),
    ...unsettled.map(readinessText),
    ...(lacking.length === 0 ? [] : [`The governance account may not: ${lacking.join('; ')}.`]),
  ];
  const fallback = summary === '' || template !== undefined ? pending.sentences : [`policy ${policy}: ${summary}`];
  const steps = [
    ...(root?.status === undefined
      ? [`No controller has seen the policy yet. To find out why: ${program} doctor`]
      : []),
    ...(isIgnored ? [] : governanceSteps(graph, pending.rootCauses, program)),
    ...(lacking.length === 0 ? [] : grantSteps(key, program)),
    ...reasonSteps(template === undefined ? root : undefined, unsettled),
    ...(isBehind(root)
      ? [`To declare again what is applied: ${program} rollout undo policy/${key.name} -n ${key.namespace}`]
      : []),
    ...failing.flatMap((one) => failingStep(graph.policy(key), nameOf(one), graph.clusterNamespace, program)),
  ];
  const causes = [
    ...pending.rootCauses.map((cause) => ({ reason: cause.reason, message: requirementText(graph, cause) })),
    ...unsettled.map(causeOf),
  ];
  const unread = [
    ...pending.rootCauses.filter(({ reason }) => reason === 'Forbidden').map((cause) => requirementText(graph, cause)),
    ...readiness.filter(({ ready }) => ready === 'unreadable').map((one) => `template ${one.template}`),
  ].map((object) => `You may not read ${object}, so its state is not known.`);
  return {
    policy,
    ...(template === undefined ? {} : { template }),
    ...(compliant === undefined ? {} : { compliant }),
    because: reasons.length === 0 ? fallback : reasons,
    ...(causes.length === 0 ? {} : { rootCauses: causes }),
    ...(unread.length === 0 ? {} : { unread }),
    toDo: steps,
  };
}

interface Unsettled {
  readonly template: string;
  readonly ready: Condition;
}

/** A template with a reason that is to be known. What it waits for is said elsewhere. */
function unsettledOf({ template, ready }: TemplateReadiness): readonly Unsettled[] {
  return typeof ready === 'string' || toDoAboutGovernance(ready.reason) === undefined ? [] : [{ template, ready }];
}

function readinessText({ template, ready }: Unsettled): string {
  const { status, reason, message, lastTransitionTime } = ready;
  const state = status === 'True' ? 'is evaluated, but' : `is not evaluated since ${lastTransitionTime}:`;
  return `${template} ${state} ${reason}: ${message}`;
}

function causeOf({ template, ready: { reason, message, lastTransitionTime } }: Unsettled): RootCause {
  return { reason, message: `${template}: ${message}`, since: lastTransitionTime };
}

/** What to do about the reasons of the conditions `Ready`. */
function reasonSteps(root: PolicyManifest | undefined, unsettled: readonly Unsettled[]): readonly string[] {
  const ofRoot = findCondition(root?.status?.conditions, READY)?.reason ?? '';
  const reasons = new Set([ofRoot, ...unsettled.map(({ ready }) => ready.reason)]);
  return [...reasons].flatMap((reason) => toDoAboutGovernance(reason) ?? []);
}

/** What is wrong with the dependencies, besides a cycle that the sentences name. */
function findingTexts(
  policies: PolicyGraph,
  key: Required<ObjectKey>,
  { rootCauses }: PendingExplanation,
): readonly string[] {
  const isCycleNamed = rootCauses.some(({ reason }) => reason === 'Cycle');
  return dependencyFindings(policies, key)
    .filter(({ type }) => type !== 'cycle' || !isCycleNamed)
    .map(({ message }) => `policy ${key.namespace}/${key.name}: ${message}.`);
}

/** How to grant the rights of policies. */
function grantSteps({ namespace }: Required<ObjectKey>, program: string): readonly string[] {
  return [
    `If the policy should have these rights: ${program} governance rights -n ${namespace} | kubectl apply -f -`,
    `Then ${program} install --governance-role ${RIGHTS_ROLE}, with the roles that are granted already.`,
  ];
}

function nameOf({ templateMeta }: TemplateDetails): string {
  return templateMeta?.name ?? '';
}

/** Why the controller made no copy of a Policy: its status is then about no cluster. */
function notAppliedText(policy: string, root: PolicyManifest | undefined): readonly string[] {
  const { status, conditions } = root?.status ?? { status: [] };
  const ready = conditions?.find(({ type }) => type === READY);
  return status !== undefined || ready === undefined ? [] : [`policy ${policy} applies nowhere: ${ready.message}.`];
}

/** Whether another revision is applied than the one that is declared or pinned, because that one cannot be. */
function isBehind(root: PolicyManifest | undefined): boolean {
  return root?.status?.phase === 'Degraded' || root?.status?.phase === 'Error';
}

/** Which revision is applied, where that is not the newest one. */
function revisionText(policy: string, root: PolicyManifest | undefined): readonly string[] {
  const { phase, servingRevision, conditions } = root?.status ?? {};
  if (phase === 'RolledBack') {
    return [`policy ${policy} is RolledBack: a pin holds revision ${servingRevision ?? 0}.`];
  }
  return isBehind(root) ? [`policy ${policy} is ${phase}: ${findCondition(conditions, READY)?.message ?? ''}.`] : [];
}

/** How to look at a template that is not compliant. */
function failingStep(
  policy: GraphPolicy | undefined,
  name: string,
  clusterNamespace: string,
  program: string,
): readonly string[] {
  const template = policy?.templates.find((one) => one.name === name);
  const object = template && { ...template, namespace: clusterNamespace };
  return object === undefined ? [] : [`See what ${name} finds: ${describeText(object, program)}`];
}
