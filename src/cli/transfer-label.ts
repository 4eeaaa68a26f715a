import { sizeText } from './output.ts';

/** Characters of a progress bar. */
const BAR_WIDTH = 20;

/** The label of a transfer: a progress bar if the total is known, and what was transferred. */
export function transferLabel(label: string, done: number, total: number | undefined): string {
  if (total === undefined || total === 0) {
    return `${sizeText(done)} ${label}`;
  }
  const filled = Math.min(BAR_WIDTH, Math.floor((done / total) * BAR_WIDTH));
  return `${'━'.repeat(filled)}${'─'.repeat(BAR_WIDTH - filled)} ${sizeText(done)} of ${sizeText(total)} ${label}`;
}
