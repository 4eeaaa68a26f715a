/** Whether a field has a value: null counts as absent, as in Kubernetes' decoder. */
export function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
