// An entry of its own for who grants rights and runs no controller.
export {
  GOVERNANCE_ACCOUNT,
  GOVERNANCE_ACCOUNT_RULES,
  GOVERNANCE_CONTROLLER_RULES,
  governanceNamespaceRules,
  OTHER_CONTROLLERS,
} from './governance-rules.ts';
