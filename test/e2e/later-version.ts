// A later version of the product: this checkout, copied, with another version number, and with what it writes said otherwise in
// places, as versions do.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../cli/command.ts';

/** What a later version says otherwise, file by file. */
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
  // What it says of a policy and of a policy server.
  {
    file: 'src/lifecycle/rollout/policy-status.ts',
    from: '`revision ${serving.number} serves`',
    to: '`revision ${serving.number} is what serves`',
  },
  {
    file: 'src/lifecycle/replicas/policy-server-controller.ts',
    from: "ready === 1 ? 'answers' : 'answer'",
    to: "'answering'",
  },
];

/** A copy of the product in a folder of its own. */
export interface LaterVersion extends AsyncDisposable {
  /** Of the program, as in this checkout. */
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
