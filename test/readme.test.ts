// The commands of the README and of docs/governance.md, run as they are written, in a copy of the work tree; and what
// CONTRIBUTING.md lists.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { POLICY_EXAMPLES } from '../src/cli/start/examples-folder.ts';
import { copyWorkTree } from '../tools/work-tree.ts';
import { clusterAvailable, skipWithoutCluster } from './cluster/binaries.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const governance = readFileSync(join(root, 'docs', 'governance.md'), 'utf8');
const commands = [...readme.matchAll(/```sh\n([^]*?)```/g)].map(([, text]) => text?.trim() ?? '');
/** How long anything may take that takes a second or two on two cores. */
const PATIENCE_MS = 60_000;

/** The one command of the README that matches. */
function command(pattern: RegExp): string {
  const found = commands.filter((text) => pattern.test(text));
  assert.equal(found.length, 1, `expected one command that matches ${pattern} in README.md, got ${found.length}`);
  return found[0] ?? '';
}

async function eventually<T>(attempt: () => T): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (performance.now() > deadline) {
        throw error;
      }
    }
    await sleep(50);
  }
}

describe('CONTRIBUTING.md', () => {
  it('says what each file of the full run would catch', () => {
    const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
    const names = globSync('**/*.full.test.ts', { cwd: join(root, 'test') }).map((file) => file.replace(/\..*/, ''));
    assert.ok(names.length > 0);
    assert.deepEqual(
      names.filter((name) => !page.includes(`\`${name}\``)),
      [],
    );
  });
});

describe('README.md', () => {
  it('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
    const named = [...readme.matchAll(/npm (?:run ([\w:]+)|(test|start))/g)].map(
      ([, run, short]) => run ?? short ?? '',
    );
    assert.ok(named.length > 3);
    assert.deepEqual(
      named.filter((name) => !(name in scripts)),
      [],
    );
  });

  describe('sixty seconds', () => {
    let copy: string;
    let server: ChildProcess | undefined;
    let output = '';
    const kubectl = clusterAvailable();
    const path = kubectl.available ? `${dirname(kubectl.binaries.kubectl)}:${process.env['PATH'] ?? ''}` : undefined;
    /** Deleted with the copy: its entries are of no use to other runs. */
    const compileCache = (): string => join(copy, '.cache', 'node');
    /** As in the other terminal: what was exported there stays exported. */
    const sh = (text: string): string =>
      execFileSync('sh', ['-c', `exec 2>&1\n${text}`], {
        cwd: copy,
        encoding: 'utf8',
        stdio: 'pipe',
        env: {
          ...process.env,
          ...(path === undefined ? {} : { PATH: path }),
          KUBECONFIG: join(copy, '.portcullis', 'kubeconfig'),
          KUBECACHEDIR: join(copy, '.cache', 'kubectl'),
          NODE_COMPILE_CACHE: compileCache(),
          KUBERC: 'off',
        },
      });
    const failed = (text: string): string => {
      try {
        return assert.fail(`expected a failure, got ${sh(text)}`);
      } catch (error) {
        return String((error as { stdout?: unknown }).stdout ?? error);
      }
    };
    /** The block of output that follows a command. */
    const outputOf = (line: string): string =>
      readme.split(`${line}\n\`\`\`\n\`\`\`text\n`)[1]?.split('\n```')[0] ?? assert.fail(`no output follows ${line}`);
    /** The printed line whose ports are those that were free. */
    const printedCurl = (): string => {
      const line = /^ *(curl --cacert .*)$/m.exec(output)?.[1];
      assert.ok(line, `npm start has not printed its curl line:\n${output}`);
      return line;
    };

    before(() => {
      copy = mkdtempSync(join(tmpdir(), 'portcullis-readme-'));
      copyWorkTree(copy);
    });
    after(async () => {
      if (server?.pid !== undefined && server.exitCode === null && server.signalCode === null) {
        const exit = once(server, 'exit');
        process.kill(-server.pid, 'SIGTERM');
        await exit;
      }
      rmSync(copy, { recursive: true, force: true });
    });

    it('begins with a clone and npm start, which prints a table and lines to copy', async () => {
      const [clone, start] = command(/git clone/).split('\n');
      assert.match(clone ?? '', /^git clone .* portcullis && cd portcullis$/);
      assert.equal(start, 'npm start');
      // A group of its own, which is sent signals as a terminal sends them.
      server = spawn('sh', ['-c', start], {
        cwd: copy,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, NODE_COMPILE_CACHE: compileCache() },
      });
      for (const stream of [server.stdout, server.stderr]) {
        stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
      }
      await eventually(() => {
        assert.equal(server?.exitCode, null, `npm start has ended:\n${output}`);
        assert.match(output, /Ctrl-C stops/);
      });
      const examples = POLICY_EXAMPLES.map((name) => (name === 'toolforge' ? 'tool-pods' : name));
      for (const name of examples) {
        const row = new RegExp(`^kw\\.capg?\\.${name} +(protect|monitor) +Active `, 'm');
        assert.match(output, row);
      }
      const address = readFileSync(join(copy, '.portcullis', 'address'), 'utf8');
      assert.equal(printedCurl(), command(/curl --cacert/).replace('$(cat .portcullis/address)', address.trim()));
      const patch = /kubectl patch cap.*/.exec(command(/kubectl patch cap/))?.[0];
      for (const line of [
        'kubectl apply -f examples/pinned-images/policy.yaml\n',
        'kubectl run web --image=nginx\n',
        `${patch} && kubectl wait`,
        /kubectl annotate [^`]*/.exec(readme)?.[0] ?? '',
      ]) {
        assert.ok(output.includes(`  ${line}`), output);
      }
    });

    it('writes down what an installation is', () => {
      sh(command(/portcullis install --dry-run/));
      const manifests = readFileSync(join(copy, 'portcullis.yaml'), 'utf8');
      assert.match(manifests, /^kind: Deployment$/m);
      assert.match(manifests, /^kind: PolicyServer$/m);
    });

    it('says where its kubeconfig is', () => {
      const [line] = command(/export KUBECONFIG/).split('\n');
      assert.equal(line?.replace('$PWD', copy), /export KUBECONFIG=\S+/.exec(output)?.[0]);
    });

    it('shows the digests of a module from a registry', () => {
      const { manifests } = JSON.parse(readFileSync(join(copy, 'examples', 'registry', 'index.json'), 'utf8')) as {
        manifests: readonly { digest: string }[];
      };
      const shown = sh(command(/rollout history .*--revision/));
      assert.match(
        shown,
        new RegExp(`registry:.*registry\\.example/.* \\(sha256:\\w+, manifest ${manifests[0]?.digest}\\)`),
      );
    });

    it('answers a review that anybody sends', () => {
      const { response } = JSON.parse(sh(`${command(/curl --cacert/)} 2>/dev/null`)) as {
        response: { allowed: boolean; status: { message: string } };
      };
      assert.equal(response.allowed, false);
      assert.match(response.status.message, /has no label/);
    });

    describe('with kubectl', { skip: skipWithoutCluster() }, () => {
      it('applies a policy, which serves', () => {
        const [, ...lines] = command(/export KUBECONFIG/).split('\n');
        assert.match(sh(lines.join('\n')), /pinned-images created\n.*pinned-images condition met\n$/);
      });

      it('is rejected by it', async () => {
        for (const line of [command(/kubectl run web/), command(/kubectl create deployment web/)]) {
          await eventually(() => assert.equal(failed(line).trim(), outputOf(line)));
        }
      });

      it('breaks it, sees why, and is still rejected', () => {
        const described = sh(command(/kubectl patch cap/));
        assert.match(described, /Degraded/);
        assert.match(described, /not\/there\/yet\.wasm/);
        assert.match(failed(command(/kubectl run web/)), /denied the request/);
      });

      it('runs pods of two tools as different users, and is denied others', () => {
        const lines = command(/kubectl run bot/);
        assert.equal(lines.split('\n').length, 3);
        assert.equal(failed(lines).trim(), outputOf(lines.split('\n').at(-1) ?? ''));
      });

      it('sees why a governance policy waits, and finishes it', () => {
        const said = sh(command(/kubectl get policy -A/));
        assert.match(said, /^policies +kafka-prerequisites .* Compliant /m);
        assert.match(
          said,
          /^policies +kafka-operator .* NonCompliant .* found but not as specified in namespace kafka$/m,
        );
        assert.match(
          said,
          /^policies +kafka-cluster .* Pending .* waits for Policy policies\.kafka-operator, which is /m,
        );
        assert.match(said, /kafka-cluster waits for policy policies\/kafka-operator, which is NonCompliant since /);
        assert.match(said, /: npx portcullis explain policy\/kafka-operator -n policies$/m);
        assert.match(said, /kafka-cluster condition met\nNAMESPACE +NAME +AGE\nkafka +events /);
        for (const line of command(/kubectl get policy -A/).split('\n')) {
          assert.ok(output.includes(`  ${line}\n`), `npm start does not print ${line}`);
        }
      });

      it('sees what the network provider does with a NetworkPolicy, before and after an upgrade', () => {
        const said = sh(command(/kubectl get npst -A/));
        assert.match(said, /^backups +to-storage +cilium 1\.15\.4 +False +FeatureNotSupported +endPort +FailClosed /m);
        assert.match(said, /to-storage condition met/);
      });

      it('refreshes a certificate, as docs/governance.md says', async () => {
        const [, section = ''] = governance.split(/^## Example: .*$/m);
        const blocks = [...(section.split(/^## /m)[0] ?? '').matchAll(/```(sh|text)\n([^]*?)```/g)];
        assert.deepEqual(
          blocks.map(([, language]) => language),
          ['sh', 'sh', 'text', 'sh', 'sh', 'text'],
        );
        const [expiring = '', looks = '', needed = '', renewed = '', looksAgain = '', unneeded = ''] = blocks.map(
          ([, , text = '']) => text,
        );
        /** The cells, without ages and empty ones: no documented age is that of a test. */
        const cells = (text: string): readonly string[] =>
          text
            .trim()
            .replace(/ \d+s\b/g, '')
            .split(/\n|  +/);
        assert.match(sh(expiring), /certificate-refresh condition met\n$/);
        await eventually(() => assert.deepEqual(cells(sh(looks)), cells(needed)));
        assert.match(sh(renewed), /certificate-refresh condition met\n$/);
        const [get = '', explain = ''] = looksAgain.split('\n');
        assert.deepEqual(cells(sh(get)), cells(unneeded));
        assert.match(sh(explain), /ignorePending is true: .* nothing has to be done/);
      });

      it('sees what it was, and rolls it back', () => {
        const said = sh(command(/rollout undo/));
        assert.match(said, /^REVISION +STATE +SINCE +CAUSE +DIGEST\n1 +Serving /m);
        assert.match(said, /pinned-images rolled back to revision 1\n[^]*pinned-images: Active: revision 3 serves/);
      });

      it('sees whom a stricter policy would reject, excepts one, and applies it', async () => {
        const [look = '', ...rest] = command(/rollout preview/).split('\n');
        const rejected = 'example\\.com/bot:1: an image needs a digest$';
        const seen = failed(look);
        assert.match(seen, new RegExp(`^newly rejected +1 +Pod tool-wikibot/bot +${rejected}`, 'm'));
        assert.match(seen, new RegExp(`^newly rejected +1 +Pod tool-heritage/bot +${rejected}`, 'm'));
        assert.match(sh(rest.slice(0, -1).join('\n')), /wikibot condition met\n[^]*pinned-images condition met\n$/);
        await eventually(() => {
          const found = sh(rest.at(-1) ?? '');
          assert.match(found, /fail .*tool-heritage\/bot/);
          assert.match(found, /skip .*tool-wikibot\/bot/);
        });
      });
    });

    it('ends at once, and can start over', async () => {
      assert.ok(server?.pid !== undefined);
      const exit = once(server, 'exit');
      process.kill(-server.pid, 'SIGINT');
      await exit;
      assert.ok(existsSync(join(copy, '.portcullis')));
      assert.match(readme, /`npm run reset`/);
      assert.match(sh('npm run reset'), /Removed /);
      assert.ok(!existsSync(join(copy, '.portcullis')));
    });
  });
});
