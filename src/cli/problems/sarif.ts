// SARIF 2.1.0, which code scanning services read: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
import { dataText } from '../output.ts';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PRODUCT_VERSION } from '../../modules/index.ts';
import type { Problem, ProblemPlace, ProblemRule } from './problem.ts';

const SCHEMA = 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json';

/** @param rules of all problems that could be found */
export function sarifText(problems: readonly Problem[], rules: readonly ProblemRule[]): string {
  const driver = {
    name: 'portcullis',
    version: PRODUCT_VERSION,
    rules: rules.map(({ id, description }) => ({ id, shortDescription: { text: description } })),
  };
  const results = problems.map((problem) => resultOf(problem, rules));
  const log = {
    $schema: SCHEMA,
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits', results }],
  };
  return dataText(log, 'json', { pretty: true });
}

function resultOf({ rule, level, message, subject, place }: Problem, rules: readonly ProblemRule[]): object {
  const location = {
    ...(place === undefined ? {} : { physicalLocation: physicalLocation(place) }),
    logicalLocations: [{ fullyQualifiedName: subject, kind: 'resource' }],
  };
  return {
    ruleId: rule,
    ruleIndex: rules.findIndex(({ id }) => id === rule),
    level,
    message: { text: message },
    locations: [location],
  };
}

function physicalLocation({ file, line, column }: ProblemPlace): object {
  const region = { startLine: line, ...(column === undefined ? {} : { startColumn: column }) };
  return { artifactLocation: { uri: uriOf(file) }, region };
}

/** Relative to the working folder, which is that of the repository in CI; a `file:` URL for files outside of it. */
function uriOf(file: string): string {
  const path = relative('', resolve(file));
  return isAbsolute(path) || path.startsWith('..')
    ? pathToFileURL(file).href
    : path.split(sep).map(encodeURIComponent).join('/');
}
