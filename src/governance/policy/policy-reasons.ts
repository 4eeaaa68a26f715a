/** Reasons of the condition `Ready` of Policies and of the kinds of their templates. */
export const POLICY_REASONS = {
  /** `spec.disabled` is true. */
  disabled: 'Disabled',
  /** Policies of the namespace are not governed. */
  namespaceNotGoverned: 'NamespaceNotGoverned',
  /** A Policy in the namespace of the cluster that is no copy. */
  notACopy: 'NotACopy',
  /** No placement selects a cluster. */
  notPlaced: 'NotPlaced',
  /** The Policy has more dependencies than are allowed. */
  dependenciesInvalid: 'DependenciesInvalid',
  /** The name of a copy would be too long. */
  nameTooLong: 'NameTooLong',
  /** The namespace of the cluster was created by others. */
  clusterNamespaceNotOurs: 'ClusterNamespaceNotOurs',
  /** All templates were evaluated. The compliance is a result, not a failure. */
  evaluated: 'Evaluated',
  /** Some objects were compared without a dry run, because the governance account may not update them. */
  comparedOnly: 'ComparedWithoutDryRun',
  /** The governance account cannot read whether the policy created some objects, so that it does not delete them. */
  creatorUnknown: 'CreatorUnknown',
  /** A Policy of a PolicySet does not exist. Also the reason of an event. */
  policyNotFound: 'PolicyNotFound',
  /** Some templates wait for dependencies. */
  pending: 'DependenciesPending',
  /** The copy or a template was not evaluated since the last change. */
  evaluating: 'Evaluating',
  /** A template cannot be applied. */
  templateError: 'TemplateError',
  /** A dependency of the Policy is no longer met, so that nothing is evaluated. */
  suspended: 'Suspended',
  /** The governance account cannot read some objects. */
  unreadable: 'ObjectsUnreadable',
  /** The evaluation was ended, because it takes too much time or memory. It is tried again, with growing delays. */
  ended: 'EvaluationEnded',
  /** Templates look up too many kinds, one after the other. */
  tooManyKinds: 'TooManyKinds',
  /** Another policy alternately changes the same objects. */
  contested: 'Contested',
  /** Objects of the policy are being deleted. */
  pruning: 'Pruning',
  /** `spec.namespaceSelector` cannot be used. */
  selectorInvalid: 'NamespaceSelectorInvalid',
} as const;
