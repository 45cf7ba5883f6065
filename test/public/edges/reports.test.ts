// Public reports about text that enters and leaves tools like this one: the situation of each, played here (test/public/edges.md).
import { describe, expect, test } from 'vitest';
import { jsonLine, plainTerminal } from '../../../lib/cli/terminal';
import { byStep, matchesMarker } from '../../../lib/control/reconcile/observe/checkpoints';
import { plainLine, textTable } from '../../../lib/core/config/formats/plain-text';
import { issue } from '../../../lib/core/config/issue';
import { loadRun } from '../../../lib/core/config/load';
import { applyOverrides } from '../../../lib/core/config/reading/overrides';
import { parseYaml } from '../../../lib/core/config/reading/yaml-file';
import { checkRun } from '../../../lib/core/rules';
import { page } from '../../../lib/report/page/page';
import { DESCRIPTOR } from '../../support/runs';

const RUN = {
  name: 'a',
  code: { source: 'src', entryPoint: 'train.py' },
  compute: { instanceType: 'ml.m5.xlarge', instanceCount: 1 },
  distribution: { launcher: 'script' },
};

/** Rules that find something in a run with these options. */
function rulesOf(more: object, guardrails: object = {}): string[] {
  const { value } = loadRun(JSON.stringify({ ...RUN, ...more }));
  if (!value) throw new Error('the run file is not valid');
  const found = checkRun(value, { descriptor: { ...DESCRIPTOR, guardrails } as never });
  return found.map(({ level, rule }) => `${level} ${rule}`).filter((rule) => /code\/|guardrails\//.test(rule));
}

function printed(text: string): string {
  const lines: string[] = [];
  plainTerminal({ out: (line) => lines.push(line), err: () => undefined }).out(text);
  return lines.join('\n');
}

describe('output', () => {
  test('kubernetes/kubernetes#101695: a reason with escape sequences', () => {
    expect(textTable(['run', 'reason'], [['a', '\u001b[2J\u001b[1;31mfailed\u001b[0m']])).toBe(
      'run  reason\na    failed',
    );
  });

  test('kubernetes/kubernetes#107617: a tag whose name and value have them', () => {
    expect(printed('tags k\u001b]0;t\u0007=\u001b[8mv')).toBe('tags k=v');
  });

  test('kubernetes/kubernetes#112553: a carriage return that writes over its line', () => {
    expect(plainLine('failed: out of memory\rcompleted            ')).toBe('failed: out of memory completed');
    expect(printed('a\rb')).toBe('a\nb');
  });

  test('substack/text-table#9: a cell with a line feed', () => {
    expect(
      textTable(
        ['run', 'note'],
        [
          ['a', 'one\n  two'],
          ['b', 'x'],
        ],
      ).split('\n'),
    ).toEqual(['run  note', 'a    one two', 'b    x']);
  });

  test('release-it/release-it#1326: a title for the window in text of somebody else', () => {
    expect(plainLine('fix: x\u001b]0;owned\u0007 (#3)')).toBe('fix: x (#3)');
  });

  test('resend/resend-cli#228: JSON keeps the value, and no control character of C1 is in it', () => {
    const value = { note: '\u009b2Ja\u007f' };
    expect(jsonLine(value)).toBe('{"note":"\\u009b2Ja\\u007f"}');
    expect(JSON.parse(jsonLine(value))).toEqual(value);
  });

  test('spencermountain/out-of-character#90: overrides and isolates in a page', () => {
    const found = page({ title: 'a\u202eb\u2066c\u2069', header: 'x', sections: [], footer: '\u061c' });
    expect(found).toContain('<title>abc</title>');
    expect(found).not.toMatch(/\p{Bidi_Control}/u);
  });

  test('ssamba1/untell#48: an override among letters of which one is Arabic', () => {
    expect(plainLine('Access GRANTED \u202eDENIED \u0645')).toBe('Access GRANTED DENIED \u0645');
  });

  test('uber/ADR#45, bug-ops/mcp-execution#431: text in tags and variation selectors', () => {
    expect(plainLine('ok\u{e0069}\u{e0067}\u{e0110}\ufe03')).toBe('ok');
    expect(plainLine('❤️')).toBe('❤️');
  });

  test('PeerDB-io/peerdb#1444, sensu-plugins/sensu-plugins-aws#276: a subject of 100 characters, cut between characters', () => {
    expect(plainLine(`Slipway: ${'é'.repeat(200)}`, 100)).toMatch(/^Slipway: é{88}\.\.\.$/);
  });
});

describe('patterns', () => {
  test('apollographql/vscode-graphql#309: many stars before a letter that is not there', () => {
    expect(matchesMarker(`${'*'.repeat(34)}X***`, 'a'.repeat(1000))).toBe(false);
    expect(matchesMarker('*a*a*a*a*a*a*a*a*a*a*b', 'a'.repeat(200))).toBe(false);
  });

  test('github/advisory-database#7087: stars in many folders', () => {
    expect(matchesMarker(`${'**/a/'.repeat(20)}b`, `${'a/'.repeat(60)}c`)).toBe(false);
  });

  test.each([
    [['step-500/', 'step-2500/'], 'nvidia-cosmos/cosmos-rl#232'],
    [['step-0900000/', 'step-2500000/'], 'strands-labs/robots#3165'],
    [['step-old/', 'latest/', 'step-3/'], 'skydiscover-ai/skydiscover#9'],
  ])('%s of %s: the newest is the highest number', (folders) => {
    expect(byStep(folders)[0]).toBe(folders.at(-1));
  });
});

describe('input', () => {
  test('nodeca/js-yaml#738, simstudioai/sim#5756: aliases of aliases', () => {
    const levels = 'bcdefghij'.split('').map((name, i) => `${name}: &${name} [${`*${'abcdefghi'[i]},`.repeat(9)}]`);
    const { data, issues } = parseYaml(`a: &a [x,x,x,x,x,x,x,x,x]\n${levels.join('\n')}`);
    expect([data, issues.map(({ rule }) => rule)]).toEqual([undefined, ['schema/yaml']]);
  });

  test('nodeca/js-yaml#739: thousands of levels are refused in the words of this project', () => {
    expect(parseYaml('['.repeat(5000) + ']'.repeat(5000)).issues.map(({ message }) => message)).toEqual([
      'file: must be YAML with at most 64 levels of sections and lists; use fewer levels',
    ]);
  });

  test.each(['a[999999999]=1', 'a[4294967294]=1', 'a[100000000000000000000000]=1'])(
    'tj/node-querystring#60, hughsk/flat#195: %s makes no list',
    (override) => {
      const { data, issues } = applyOverrides({}, [override]);
      expect([data, issues.map(({ rule }) => rule)]).toEqual([{}, ['schema/set']]);
    },
  );

  test('a message that quotes a value is one line', () => {
    expect(issue('r', 'error', 'a', { must: 'must hold', got: 'x\u001b[2J\ny\u202e', fix: 'change it' }).message).toBe(
      'a: must hold, got x y; change it',
    );
  });
});

describe('variables and images', () => {
  test.each([
    ['CentaurusInfra/alnair#45', { LD_PRELOAD: '/opt/ml/code/x.so' }, ['warning code/replaced-variables']],
    ['heroku/base-images#243', { PYTHONHOME: '/opt/python' }, ['error code/reserved-variables']],
    [
      'Growth-Circle/cadis#889',
      { LD_LIBRARY_PATH: '/x', AWS_ENDPOINT_URL: 'http://x' },
      ['error code/reserved-variables', 'warning code/replaced-variables'],
    ],
    [
      'aws/sagemaker-python-sdk#1857',
      { PATH: '/opt/x:$PATH' },
      ['warning code/replaced-variables', 'warning code/unexpanded-variables'],
    ],
  ])('%s: %j', (_source, environmentVariables, found) => {
    expect(rulesOf({ environmentVariables })).toEqual(found);
  });

  const REGISTRY = '111122223333.dkr.ecr.us-west-2.amazonaws.com';
  test.each([
    ['open-policy-agent/gatekeeper-library#80', `${REGISTRY}/team`, `${REGISTRY}/teamnotreally/x:1`],
    ['open-policy-agent/gatekeeper-library#538', REGISTRY, `${REGISTRY}.malicious.com/x:1`],
    ['paperclipai/paperclip#5807', 'ghcr.io/company', 'ghcr.io/companyattacker/x:latest'],
    ['Azure/ARO-HCP#4690', 'registry.company.com', 'registry.company.com:5000/x:1'],
  ])('%s: the prefix %s does not allow %s', (_source, prefix, uri) => {
    expect(rulesOf({ image: { kind: 'uri', uri } }, { allowedImages: [prefix] })).toContain('error guardrails/images');
  });
});
