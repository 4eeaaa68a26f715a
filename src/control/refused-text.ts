import { listed } from '../values/index.ts';
import type { RefusedReport } from './replica-protocol.ts';

/** `3 of 3500 namespaces would be refused …`, for users. */
export function refusedText({ count, tried, first }: RefusedReport): string {
  const names = first.map(({ namespace }) => (namespace === '' ? '(no namespace)' : namespace));
  const reason = first[0] === undefined ? '' : ` (${first[0].message})`;
  return `${count} of ${tried} namespaces would be refused for their parameters: ${listed(names, names.length, ', ', count)}${reason}`;
}
