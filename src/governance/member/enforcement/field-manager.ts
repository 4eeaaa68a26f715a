/** The field manager of objects that policies enforce. */
export const GOVERNANCE_FIELD_MANAGER = 'portcullis-governance';
