// What each reason of the condition `Ready` of governance policies means, and what to do. docs/governance.md has the reasons.
import type { POLICY_REASONS } from '../governance/index.ts';

type GovernanceReason = (typeof POLICY_REASONS)[keyof typeof POLICY_REASONS];

/** What to do about each reason, in one sentence; undefined where nothing has to be done: a missing one is a type error. */
const TO_DO: Readonly<Record<GovernanceReason, string | undefined>> = {
  Disabled: 'Set spec.disabled to false when the policy should apply.',
  NamespaceNotGoverned: 'Move the Policy to a namespace that is governed, or govern this one (governance.namespaces).',
  NotACopy: 'Create the Policy in another namespace: that of the cluster holds copies only.',
  NotPlaced: 'Bind the Policy to a placement that selects this cluster.',
  DependenciesInvalid: 'Correct spec.dependencies.',
  NameTooLong: 'Give the Policy a shorter name, or its namespace.',
  ClusterNamespaceNotOurs:
    'Choose another cluster name (governance.clusterName), or delete the namespace that the message names.',
  Evaluated: undefined,
  ComparedWithoutDryRun:
    'Grant the governance account the right to update these objects, or give the defaults in the policy.',
  CreatorUnknown: 'Grant the governance account the right to get these objects, or delete those that are not needed.',
  PolicyNotFound: 'Create the Policy, or remove it from the PolicySet.',
  DependenciesPending: undefined,
  Evaluating: undefined,
  TemplateError: 'Correct the template that the message names.',
  Suspended: 'Make the dependencies of the Policy true again: it is evaluated then.',
  ObjectsUnreadable: 'Grant the governance account the right to read these objects.',
  EvaluationEnded:
    'Make its selectors and templates match fewer objects, or split it into several policies (docs/governance.md#limits).',
  TooManyKinds: 'Look up fewer kinds in its templates.',
  Contested: 'Let one of the two policies alone enforce these objects.',
  Pruning: 'Wait until the objects that the message names are gone.',
  NamespaceSelectorInvalid: 'Correct spec.namespaceSelector.',
};

/** What to do about a reason of the condition `Ready`; undefined where nothing has to be done, or for a reason of a newer version. */
export function toDoAboutGovernance(reason: string): string | undefined {
  const answers: Readonly<Record<string, string | undefined>> = TO_DO;
  return Object.hasOwn(answers, reason) ? answers[reason] : undefined;
}
