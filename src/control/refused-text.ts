import type { RefusedReport } from './replica-protocol.ts';

/** `3 of 3500 namespaces would be refused …`, for users. */
export function refusedText({ count, tried, first }: RefusedReport): string {
  const named = first.map(({ namespace }) => (namespace === '' ? '(no namespace)' : namespace)).join(', ');
  const more = count > first.length ? ` and ${count - first.length} more` : '';
  const reason = first[0] === undefined ? '' : ` (${first[0].message})`;
  return `${count} of ${tried} namespaces would be refused for their parameters: ${named}${more}${reason}`;
}
