// Names of the governance API of Open Cluster Management: its group, labels, annotations and finalizer.

/** The group of governance policies. */
export const GOVERNANCE_GROUP = 'policy.open-cluster-management.io';

export const GOVERNANCE_LABELS = {
  /** On a copy of a Policy: the Policy that it was copied from, as `namespace.name`. */
  rootPolicy: `${GOVERNANCE_GROUP}/root-policy`,
  /** On a copy of a Policy, and on objects of its templates: the cluster. */
  clusterName: `${GOVERNANCE_GROUP}/cluster-name`,
  /** On a copy of a Policy, and on objects of its templates: the namespace of the cluster. */
  clusterNamespace: `${GOVERNANCE_GROUP}/cluster-namespace`,
  /** On a CustomResourceDefinition: `template` allows its objects in `policy-templates`. */
  policyType: `${GOVERNANCE_GROUP}/policy-type`,
} as const;

export const GOVERNANCE_ANNOTATIONS = {
  /** Comma-separated names, by which consoles group policies. */
  standards: `${GOVERNANCE_GROUP}/standards`,
  categories: `${GOVERNANCE_GROUP}/categories`,
  controls: `${GOVERNANCE_GROUP}/controls`,
  description: `${GOVERNANCE_GROUP}/description`,
  /** Any change of its value makes templates of the hub resolve again. */
  triggerUpdate: `${GOVERNANCE_GROUP}/trigger-update`,
  /** `"true"`: templates of Go are plain text. */
  disableTemplates: `${GOVERNANCE_GROUP}/disable-templates`,
  encryptionIv: `${GOVERNANCE_GROUP}/encryption-iv`,
  /** The error of templates of the hub. */
  hubTemplatesError: `${GOVERNANCE_GROUP}/hub-templates-error`,
  /** Any change of its value evaluates the policy again. */
  rerun: `${GOVERNANCE_GROUP}/rerun`,
} as const;

/** The finalizer of ConfigurationPolicies that delete their objects. */
export const PRUNE_FINALIZER = `${GOVERNANCE_GROUP}/delete-related-objects`;

/** The condition of Policies whose dependencies are free of cycles, conflicts and unknown names. */
export const DEPENDENCIES_VALID = 'DependenciesValid';
