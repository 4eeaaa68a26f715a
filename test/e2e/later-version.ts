// A later version of the product: a copy of this checkout with another version number and other messages.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../cli/command.ts';

/** The changes of the later version, by file. */
const CHANGES: readonly { readonly file: string; readonly from: string; readonly to: string }[] = [
  { file: 'package.json', from: '"version": "0.1.0"', to: '"version": "0.2.0"' },
  {
    file: 'src/lifecycle/policy-servers/policy-server-deployment.ts',
    from: 'const REVISION_HISTORY_LIMIT = 3;',
    to: 'const REVISION_HISTORY_LIMIT = 5;',
  },
  // The earlier version knows neither the annotation nor the condition.
  {
    file: 'src/lifecycle/webhooks/webhook-configurations.ts',
    from: 'metadata: { name, labels: { ...MANAGED_BY, [POLICY_SERVER_LABEL]: policyServer } },',
    to: "metadata: { name, labels: { ...MANAGED_BY, [POLICY_SERVER_LABEL]: policyServer }, annotations: { 'portcullis.dev/later': 'yes' } },",
  },
  {
    file: 'src/lifecycle/webhooks/exemptions.ts',
    from: '    ...(identities.length === 0',
    to: `    condition('later', 'request.userInfo.username == "later"'),\n    ...(identities.length === 0`,
  },
  {
    file: 'src/lifecycle/admission/own-kinds-configuration.ts',
    from: 'const TIMEOUT_SECONDS = 10;',
    to: 'const TIMEOUT_SECONDS = 12;',
  },
  // Messages in the status of a policy and of a PolicyServer.
  {
    file: 'src/lifecycle/rollout/admission-policy-status.ts',
    from: '`revision ${serving.number} serves`',
    to: '`revision ${serving.number} is what serves`',
  },
  {
    file: 'src/lifecycle/replicas/policy-server-controller.ts',
    from: "ready === 1 ? 'answers' : 'answer'",
    to: "'answering'",
  },
];

/** A copy of the product in a separate folder. */
export interface LaterVersion extends AsyncDisposable {
  /** The path of the program in the copy. */
  readonly program: string;
}

export async function laterVersion(): Promise<LaterVersion> {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-later-'));
  for (const part of ['bin', 'src', 'package.json']) {
    await cp(join(ROOT, part), join(folder, part), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const { file, from, to } of CHANGES) {
    const path = join(folder, file);
    const text = await readFile(path, 'utf8');
    assert.equal(text.split(from).length, 2, `${file} has no ${from}, or several`);
    await writeFile(
      path,
      text.replace(from, () => to),
    );
  }
  return {
    program: join(folder, 'bin', 'portcullis.mjs'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
