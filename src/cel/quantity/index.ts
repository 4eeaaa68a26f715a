// Quantities of Kubernetes. An entry of its own, so that who compares them need not load CEL.
export { parseQuantity, Quantity } from './quantity-value.ts';
