// Codes of the rules of the webhook for our own kinds, explained in docs/policy-validation.md.

/** Rules whose violation is an error. */
export const REJECTIONS = [
  'schema',
  'id-too-long',
  'rule-groups',
  'rule-wildcard',
  'rule-empty',
  'rule-overlap',
  'rule-privileged',
  'condition-name',
  'condition-expression',
  'selector',
  'side-effects',
  'mode-change',
  'group-expression',
  'group-members',
  'module-reference',
  'module-builtin',
  'module-source',
  'settings',
  'settings-rights',
  'null-object',
  'context-aware-kind',
  'host-capability',
  'other-subject',
  'not-runnable',
  'annotation',
  'disruption-amount',
  'reference-name',
  'capability-pattern',
  'pod-metadata',
  'environment',
  'resources',
  'ports',
  'source-host',
  'source-authority',
  'verification',
  'author-rights',
  'revision-writer',
] as const;

/** Rules whose violation is a warning. */
export const WARNINGS = [
  'wrong-before',
  'module-source',
  'settings',
  'host-capability',
  'rules-everything',
  'rule-never-matches',
  'constraints-never-match',
  'null-object',
  'group-expression',
  'selector-matches-nothing',
  'annotation-unknown',
  'pin-outlasts-rollback',
  'not-supported',
  'builtin-module',
] as const;

export type RejectionCode = (typeof REJECTIONS)[number];
export type WarningCode = (typeof WARNINGS)[number];
