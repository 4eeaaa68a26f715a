import { compareStrings, quote } from '../../go/index.ts';
import { pathText } from '../../resources/structured-merge/index.ts';
import type { Manager } from './managed-fields.ts';
import type { Conflict } from './ownership.ts';

/** The conflicts of a server-side apply, for the 409. */
export interface ApplyConflicts {
  readonly message: string;
  readonly causes: readonly {
    readonly reason: 'FieldManagerConflict';
    /** `conflict with "kubectl-client-side-apply" using v1` */
    readonly message: string;
    /** `.spec.replicas` */
    readonly field: string;
  }[];
}

/** Describes conflicts with the messages of API servers. */
export function conflictsOf(conflicts: ReadonlyMap<string, Conflict>): ApplyConflicts {
  const groups = [...conflicts]
    .sort(([a], [b]) => compareStrings(a, b))
    .map(([, { manager, fields }]) => ({ manager: managerText(manager), paths: [...fields.paths()].map(pathText) }));
  const causes = groups.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict' as const, message: `conflict with ${manager}`, field })),
  );
  const [only, ...others] = causes;
  const texts = groups.flatMap(({ manager, paths }) => [
    `conflicts with ${manager}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  const message =
    only !== undefined && others.length === 0
      ? `Apply failed with 1 conflict: ${only.message}: ${only.field}`
      : `Apply failed with ${causes.length} conflicts: ${texts.join('\n')}`;
  return { message, causes };
}

function managerText({ manager, operation, apiVersion, subresource }: Manager): string {
  const name = quote(manager);
  const part = subresource === '' ? name : `${name} with subresource ${quote(subresource)}`;
  return operation === 'Update' ? `${part} using ${apiVersion}` : part;
}
