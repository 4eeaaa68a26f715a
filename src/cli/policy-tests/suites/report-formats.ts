// The output formats of `portcullis test`.
import { writeFile } from 'node:fs/promises';
import { styled } from '../../../values/index.ts';
import { fileProblem } from '../../../files/index.ts';
import { CliError, EXIT } from '../../errors.ts';
import { githubAnnotations } from '../../problems/github-annotations.ts';
import { sarifText } from '../../problems/sarif.ts';
import { terminalWidth } from '../../table.ts';
import { checkProblems } from './check-problems.ts';
import type { CheckReport } from './checks.ts';
import { junitReport } from './junit-report.ts';
import { tapReport } from './tap-report.ts';

/** Formats of CI systems. */
const CHECK_FORMATS = ['junit', 'sarif', 'github', 'tap'] as const;
type CheckFormat = (typeof CHECK_FORMATS)[number];

export const FORMATS = ['table', 'json', 'yaml', ...CHECK_FORMATS] as const;
export type Format = (typeof FORMATS)[number];

/** A report that is also written to a file. */
export interface ReportFile {
  readonly format: Format;
  readonly path: string;
}

export function isCheckFormat(format: Format): format is CheckFormat {
  return CHECK_FORMATS.some((one) => one === format);
}

export function checksText(report: CheckReport, format: CheckFormat): string {
  switch (format) {
    case 'junit':
      return junitReport(report);
    case 'sarif':
      return sarifText(checkProblems(report), report.rules);
    case 'github':
      return githubAnnotations(checkProblems(report));
    case 'tap':
      return tapReport(report);
    default:
      return format satisfies never;
  }
}

/** Whether Node would print styles on a stream: https://nodejs.org/api/util.html#utilstyletextformat-text-options */
export function hasColors(stream: NodeJS.WriteStream | undefined): boolean {
  return stream !== undefined && styled('red', 'x', { stream }) !== 'x';
}

/** The width of a stream that is a terminal. Lines of other streams are not shortened. */
export function widthOf(stream: NodeJS.WriteStream | undefined): { readonly width?: number } {
  return stream?.isTTY === true ? { width: terminalWidth() } : {};
}

/** Writes reports to files. @throws CliError */
export async function writeReports(files: readonly ReportFile[], textOf: (format: Format) => string): Promise<void> {
  for (const { format, path } of files) {
    try {
      await writeFile(path, textOf(format));
    } catch (error) {
      const exitCode = EXIT.usage;
      const hint = 'Name a file in a folder that exists: --output-file FORMAT=FILE.';
      throw new CliError(`${path} cannot be written: ${fileProblem(error)}`, { cause: error, exitCode, hint });
    }
  }
}
