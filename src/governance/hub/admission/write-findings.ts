import type { FieldError } from '../../../resources/index.ts';

/** Codes of rules whose violation is an error. docs/governance.md lists all codes. */
export const GOVERNANCE_ERRORS = ['remediation-action', 'name-too-long', 'set-exclusions'] as const;

/** Codes of rules whose violation is a warning. */
export const GOVERNANCE_WARNINGS = [
  'remediation-action',
  'namespace',
  'dependency',
  'dependency-cycle',
  'dependency-not-found',
  'dependency-not-placed',
  'dependency-conflict',
  'template',
  'template-kind',
  'template-name',
  'hub-template',
  'set-member',
] as const;

export interface GovernanceError extends FieldError {
  readonly code: (typeof GOVERNANCE_ERRORS)[number];
}

export interface GovernanceWarning {
  readonly code: (typeof GOVERNANCE_WARNINGS)[number];
  /** `spec.dependencies[0].name` */
  readonly field: string;
  readonly text: string;
}

/** The findings about an object that is applied. */
export interface WriteFindings {
  readonly errors: readonly GovernanceError[];
  readonly warnings: readonly GovernanceWarning[];
}
