/** What went wrong, in words. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
