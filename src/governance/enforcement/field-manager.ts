/** The owner of the fields that policies enforce. */
export const GOVERNANCE_FIELD_MANAGER = 'portcullis-governance';
