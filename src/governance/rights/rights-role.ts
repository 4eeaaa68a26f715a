/** The name of the ClusterRole with the rights that policies need, as `portcullis governance rights` prints it. */
export const RIGHTS_ROLE = 'governance-policies';
