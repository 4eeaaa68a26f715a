// Reads policies of a policies file, for the loader thread.
import {
  definitionHash,
  parsePolicies,
  type PolicyDefinition,
  type PolicyFault,
  readPolicyDefinition,
  settingsHash,
} from '../../engine/index.ts';
import { errorText, parseJson } from '../../values/index.ts';
import type { DeclaredPolicy, ReadPolicy } from './load-request.ts';
import type { EntryText } from './loader-lane.ts';

/** Parses the text of a policies file. Throws when it is none at all. */
export function parseEntries(text: string, fileName: string): ReadPolicy[] {
  const { policies, problems } = parsePolicies(text, fileName);
  const faulty = [...Map.groupBy(problems, ({ id }) => id)].map(([id, ofOne]) => ({
    id,
    problems: ofOne.map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`),
  }));
  return [...policies.map(declared), ...faulty];
}

/** Reads one entry, with its own limits: objects share nothing with each other, unlike aliases in a file. */
export function readEntry({ id, json }: EntryText): ReadPolicy {
  try {
    const { definition, faults } = readPolicyDefinition(id, parseJson(json));
    return definition === undefined ? { id, problems: faults.map(problemText) } : declared(definition);
  } catch (error) {
    return { id, problems: [errorText(error)] };
  }
}

function declared(definition: PolicyDefinition): DeclaredPolicy {
  return { definition, hash: definitionHash(definition), settingsHash: settingsHash(definition) };
}

function problemText({ message, path }: PolicyFault): string {
  return path.length === 0 ? message : `${path.join('.')}: ${message}`;
}
