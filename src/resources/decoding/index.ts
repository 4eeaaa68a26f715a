// What API servers make of objects of builtin kinds when they read them. Not exported by resources/index.ts, so that it is
// loaded only where it is used.
export { applyBuiltinDefaults } from './apply-defaults.ts';
export { decodeError } from './decode-error.ts';
export { canonicalQuantity, quantityOf } from './quantities.ts';
