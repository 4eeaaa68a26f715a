export { admissionPolicySteps } from './admission-policy-steps.ts';
export { explainGovernancePolicy } from './explain-governance-policy.ts';
export type { GovernanceSubject } from './explain-governance-policy.ts';
export { explainerOf } from './explain-object.ts';
export { explainPolicySet } from './explain-policy-set.ts';
export type { Explanation } from './explanation.ts';
export { CORRECT, toDoAbout } from './reason-answers.ts';
export { templateReadiness } from './template-readiness.ts';
