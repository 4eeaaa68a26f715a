/** Labels of every object that we write. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'portcullis' } as const;

/** A label selector for objects with all of these labels, as text for list requests. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join();
}

/** Selects objects with {@link MANAGED_BY}. */
export const MANAGED_BY_SELECTOR: string = labelsText(MANAGED_BY);
