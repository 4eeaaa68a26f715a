/** The field manager of controllers' writes. */
export const FIELD_MANAGER = 'portcullis-controller';
