// Runs what GitOps tools read health with over objects.
import { spawnSync } from 'node:child_process';
import { gitOpsHealthPath } from '../cluster/binaries.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';

interface Health {
  readonly status: string;
  readonly message: string;
}

/** What tools say of one object. */
export interface ToolHealth {
  readonly kstatus: Health;
  readonly argo: Health;
}

/** @param script a health script of Argo CD */
export function toolHealth(script: string, objects: readonly KubernetesObject[]): readonly ToolHealth[] {
  const { status, stdout, stderr, error } = spawnSync(gitOpsHealthPath(), {
    input: JSON.stringify({ script, objects }),
    encoding: 'utf8',
  });
  if (status !== 0) {
    throw new Error(`gitops-health failed: ${stderr}`, { cause: error });
  }
  return JSON.parse(stdout) as readonly ToolHealth[];
}
