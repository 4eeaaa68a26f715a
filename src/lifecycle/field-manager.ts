/** Who owns the fields of what controllers write. */
export const FIELD_MANAGER = 'portcullis-controller';
