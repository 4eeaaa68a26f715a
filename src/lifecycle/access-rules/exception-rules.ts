import { type AccessRule, POLICY_EXCEPTIONS, PORTCULLIS_GROUP } from '../../resources/index.ts';

/** The ValidatingAdmissionPolicy, and its binding, by which API servers ask who may except. */
export const EXCEPTION_GUARD = 'portcullis-exceptions';
/** Those by which only the controller says what is accepted. */
export const EXCEPTION_STATUS_GUARD = 'portcullis-exception-status';

/** Access rules of the controller that accepts exceptions. */
export const EXCEPTION_RULES: readonly AccessRule[] = [
  { apiGroups: [PORTCULLIS_GROUP], resources: [POLICY_EXCEPTIONS.resource], verbs: ['list', 'watch'] },
  { apiGroups: [PORTCULLIS_GROUP], resources: [`${POLICY_EXCEPTIONS.resource}/status`], verbs: ['patch'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
    resourceNames: [EXCEPTION_GUARD, EXCEPTION_STATUS_GUARD],
    verbs: ['get'],
  },
];
