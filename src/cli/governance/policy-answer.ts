// What `portcullis explain` says about a policy.
import { styled } from '../../values/index.ts';
import type { Explanation, GraphPolicy } from '../../governance/index.ts';
import { type ObjectKey, READY, type TemplateDetails } from '../../resources/index.ts';
import { programName } from '../program-name.ts';
import { oneLine } from '../table.ts';
import { describeText, nextSteps } from './next-steps.ts';
import { findingsOf, type PolicyGraph, type PolicyManifest } from './policy-graph.ts';
import { type PolicyRight, rightTexts } from './rights/account-rights.ts';
import { RIGHTS_ROLE } from './rights/rights.ts';

/** A policy, or one template of it. */
export interface Subject {
  readonly key: Required<ObjectKey>;
  readonly template: string | undefined;
}

export interface Answer {
  /** `namespace/name`; absent for a PolicySet. */
  readonly policy?: string;
  /** `namespace/name` */
  readonly policySet?: string;
  readonly template?: string;
  /** Absent while it is not known. */
  readonly compliant?: string;
  /** What the policy waits for and what its templates report, in sentences. */
  readonly because: readonly string[];
  /** What the user can do, in sentences. */
  readonly toDo: readonly string[];
}

/** @param lacking rights of the governance account */
export function answerOf(
  { key, template }: Subject,
  policies: PolicyGraph,
  explanation: Explanation,
  lacking: readonly PolicyRight[],
): Answer {
  const { graph, roots, copies } = policies;
  const policy = `${key.namespace}/${key.name}`;
  const root = roots.get(policy);
  const copy = copies.get(`${key.namespace}.${key.name}`);
  const details = (copy?.status?.details ?? []).filter((one) => template === undefined || nameOf(one) === template);
  const compliant = template === undefined ? root?.status?.compliant : details[0]?.compliant;
  const isIgnored = compliant === 'Compliant' && explanation.rootCauses.length > 0;
  const failing = details.filter((one) => one.compliant === 'NonCompliant' && one.pending === undefined);
  const summary = root?.status?.message ?? '';
  const isHidden = explanation.rootCauses.some(({ reason }) => reason === 'Forbidden');
  const reasons = [
    ...notAppliedText(policy, root),
    // The controller may read what the user may not.
    ...(isHidden && summary !== '' ? [`policy ${policy}: ${summary}.`] : []),
    ...findingTexts(policies, key, explanation),
    ...(explanation.rootCauses.length === 0 ? [] : explanation.sentences),
    ...(isIgnored ? ['ignorePending is true: what waits counts as Compliant, and nothing has to be done.'] : []),
    ...failing.map((one) => `${nameOf(one)} reports: ${one.history?.[0]?.message ?? 'nothing'}`),
    ...(lacking.length === 0 ? [] : [`The governance account may not: ${rightTexts(lacking).join('; ')}.`]),
  ];
  const fallback = summary === '' || template !== undefined ? explanation.sentences : [`policy ${policy}: ${summary}`];
  const steps = [
    ...(root?.status === undefined
      ? [`No controller has seen the policy yet. To find out why: ${programName()} doctor`]
      : []),
    ...(isIgnored ? [] : nextSteps(graph, explanation.rootCauses)),
    ...(lacking.length === 0 ? [] : grantSteps(key)),
    ...failing.flatMap((one) => failingStep(graph.policy(key), nameOf(one), graph.clusterNamespace)),
  ];
  return {
    policy,
    ...(template === undefined ? {} : { template }),
    ...(compliant === undefined ? {} : { compliant }),
    because: (reasons.length === 0 ? fallback : reasons).map((text) => oneLine(text)),
    toDo: steps.map((text) => oneLine(text)),
  };
}

export function answerText({ policy, policySet = '', template, compliant, because, toDo }: Answer): string {
  const whole = policy === undefined ? `policyset ${policySet}` : `policy ${policy}`;
  const subject = template === undefined ? whole : `template ${template} of ${whole}`;
  const state = compliant === undefined ? 'has no compliance yet' : `is ${compliant}`;
  const lines = [
    styled('bold', oneLine(`${subject} ${state}`)),
    ...because.map((text) => `  ${text}`),
    ...(toDo.length === 0 ? [] : ['', styled('bold', 'What to do:'), ...toDo.map((text) => `  ${text}`)]),
  ];
  return `${lines.join('\n')}\n`;
}

/** What is wrong with the dependencies, besides a cycle that the sentences name. */
function findingTexts(policies: PolicyGraph, key: Required<ObjectKey>, { rootCauses }: Explanation): readonly string[] {
  const isCycleNamed = rootCauses.some(({ reason }) => reason === 'Cycle');
  return findingsOf(policies, key)
    .filter(({ type }) => type !== 'cycle' || !isCycleNamed)
    .map(({ message }) => `policy ${key.namespace}/${key.name}: ${message}.`);
}

/** How to grant the rights of policies. */
function grantSteps({ namespace }: Required<ObjectKey>): readonly string[] {
  return [
    `If the policy should have these rights: ${programName()} governance rights -n ${namespace} | kubectl apply -f -`,
    `Then ${programName()} install --governance-role ${RIGHTS_ROLE}, with the roles that are granted already.`,
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

/** How to look at a template that is not compliant. */
function failingStep(policy: GraphPolicy | undefined, name: string, clusterNamespace: string): readonly string[] {
  const template = policy?.templates.find((one) => one.name === name);
  const object = template && { ...template, namespace: clusterNamespace };
  return object === undefined ? [] : [`See what ${name} finds: ${describeText(object)}`];
}
