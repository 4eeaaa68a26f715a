// Workflow commands by which GitHub Actions shows problems beside the lines of a pull request:
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
import { inertText } from '../../values/index.ts';
import type { Problem } from './problem.ts';

/** A command for each problem, errors first: GitHub shows only the first ones of a step. */
export function githubAnnotations(problems: readonly Problem[]): string {
  const errors = problems.filter(({ level }) => level === 'error');
  const others = problems.filter(({ level }) => level !== 'error');
  return [...errors, ...others].map((problem) => `${commandOf(problem)}\n`).join('');
}

function commandOf({ rule, level, message, subject, place }: Problem): string {
  const properties = {
    ...(place === undefined ? {} : { file: place.file, line: String(place.line) }),
    ...(place?.column === undefined ? {} : { col: String(place.column) }),
    title: `${rule} of ${subject}`,
  };
  const text = Object.entries(properties).map(([key, value]) => `${key}=${escapeProperty(value)}`);
  return `::${level} ${text.join(',')}::${escapeData(message)}`;
}

/** Escapes what would end the command, so that a message cannot contain another command, and controls of the terminals of logs. */
function escapeData(text: string): string {
  return inertText(text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A'));
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
