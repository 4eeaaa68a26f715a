export { deepFreeze } from './deep-freeze.ts';
export { errorText } from './error-text.ts';
