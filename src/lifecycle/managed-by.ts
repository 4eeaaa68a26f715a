/** Found on everything that we write. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'portcullis' } as const;

/** Selects objects that have all of these labels, as lists are asked for it. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join();
}

/** Selects what has {@link MANAGED_BY}. */
export const MANAGED_BY_SELECTOR: string = labelsText(MANAGED_BY);
