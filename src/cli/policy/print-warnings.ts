import { styled } from '../../values/index.ts';
import type { Progress } from '../progress.ts';
import { oneLine } from '../table.ts';
import { type PolicyWarning, warningText } from './policy-warning.ts';

/** Prints warnings about policies on standard error. */
export function printWarnings(warnings: readonly PolicyWarning[], progress: Progress): void {
  for (const warning of warnings) {
    const label = styled('yellow', 'warning:', { stream: process.stderr });
    progress.line(`${label} ${oneLine(warningText(warning))}`);
  }
}
