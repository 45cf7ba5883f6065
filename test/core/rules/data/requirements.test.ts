import fc from 'fast-check';
import { expect, test } from 'vitest';
import { requirementOf } from '../../../../lib/core/rules/data/requirements';
import { requirementLines } from '../../../../lib/shared/archive/code-context';
import { BASE, issuesOf } from '../../../support/runs';

const plain = (name: string) => ({ name, bytes: 1, isExecutable: false });
const found = (lines: string[], rule = 'code/image-packages', others: readonly string[] = []) => {
  const file = { ...plain('requirements.txt'), requirements: lines };
  const code = { source: './src', entryPoint: 'train.py', requirements: 'requirements.txt' };
  const codeFolder = { files: [plain('train.py'), file, ...others.map(plain)], problems: [] };
  return issuesOf({ ...BASE, code, image: { kind: 'dlc', version: '2.13' } }, rule, { codeFolder });
};

test('the warning names the version of the image, and each line', () => {
  expect(found(['tqdm', 'torch==2.4.1', 'torchaudio<2.5']).map(({ message }) => message)).toEqual([
    expect.stringMatching(
      /^code\.requirements: must keep PyTorch 2\.13\S* of the image, .*, got torch==2\.4\.1 and torchaudio<2\.5; leave it out/,
    ),
  ]);
});

test('law: a range of versions is a finding when the version of the image is outside of it', () => {
  const minor = fc.integer({ min: 0, max: 30 });
  fc.assert(
    fc.property(minor, minor, fc.constantFrom('torch', 'torchaudio', 'Torch[opt]'), (least, above, name) => {
      const isInside = least <= 13 && 13 < above;
      expect(found([`${name}>=2.${least},<2.${above}`])).toHaveLength(isInside ? 0 : 1);
      expect(found([`${name}==2.${least}.*`])).toHaveLength(least === 13 ? 0 : 1);
      expect(found([`${name}~=2.${least}.0`])).toHaveLength(least === 13 ? 0 : 1);
      expect(found([`torchvision==0.${least + 15}`])).toHaveLength(least === 13 ? 0 : 1);
    }),
  );
});

test('law: a line counts unless its condition does not hold on Linux, however it is written', () => {
  const system = fc.constantFrom(
    ['sys_platform == "darwin"', false],
    ["sys_platform=='win32'", false],
    ['platform_system == "Windows"', false],
    ['platform_system != "Linux"', false],
    ['os_name == "nt"', false],
    ['sys_platform != "darwin"', true],
    ['sys_platform == "linux"', true],
    ['platform_system == "Linux"', true],
    ['os_name == "posix"', true],
  ) as fc.Arbitrary<[string, boolean]>;
  const form = fc.constantFrom(
    (marker: string) => ` ; ${marker}`,
    (marker: string) => `;${marker}`,
    (marker: string) => ` ; python_version > "3.8" and ${marker}`,
  );
  fc.assert(
    fc.property(system, form, ([marker, isLinux], write) => {
      expect(found([`torch==2.4.1${write(marker)}`])).toHaveLength(isLinux ? 1 : 0);
      expect(found([`./own.whl${write(marker)}`], 'code/package-files')).toHaveLength(isLinux ? 1 : 0);
    }),
  );
});

test('law: comments, spaces and continued lines change no requirement', () => {
  const space = fc.constantFrom('', ' ', '  ', ' \\\n ');
  fc.assert(
    fc.property(space, space, fc.constantFrom('', ' # torch==1', '\n# torch==1', '\r'), (before, after, end) => {
      const lines = requirementLines(`${before}torch${after}==${after}2.4.1${end}\n\n`);
      expect(lines.map(requirementOf)).toMatchObject([
        { name: 'torch', clauses: [{ operator: '==', version: '2.4.1' }], isAddress: false },
      ]);
    }),
  );
});

test.each(['-r other.txt', '--no-cache-dir', '.', './wheels/a.whl', 'git+https://example.org/a.git', '-e .'])(
  'the line %s names no package of an index',
  (line) => {
    expect(requirementOf(line).name).toBe('');
  },
);

test('law: a file that a line names is a finding exactly when the folder has no such file, however it is written', () => {
  const part = fc.constantFrom('a', 'b.c', 'own');
  const names = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => `${parts.join('/')}.whl`);
  const form = fc.constantFrom(
    (name: string) => name,
    (name: string) => `./${name}`,
    (name: string) => `file:./${name}`,
    (name: string) => `-e ./${name}[extra]`,
    (name: string) => `-e "./${name}[extra]"`,
    (name: string) => `own[x] @ file:${name}`,
    (name: string) => `--find-links=${name}`,
    (name: string) => `-r ${name}`,
    (name: string) => `${name} ; python_version > "3.8"`,
  );
  fc.assert(
    fc.property(fc.array(names, { maxLength: 3 }), names, form, (folder, name, write) => {
      const said = found([write(name)], 'code/package-files', folder).map(({ level }) => level);
      const isThere = folder.some((one) => one === name || one.startsWith(`${name}/`));
      expect(said).toEqual(isThere ? [] : ['error']);
    }),
  );
});

test('law: an address is found in every form of a line, and one that needs a key or is for another system is a finding', () => {
  const form = fc.constantFrom(
    (address: string) => address,
    (address: string) => `-e ${address}`,
    (address: string) => `--editable="${address}"`,
    (address: string) => `own @ ${address}`,
    (address: string) => `Own_1[a,b]@${address}`,
    (address: string) => `--find-links ${address}`,
    (address: string) => `-r ${address}`,
  );
  const address = fc.constantFrom(
    ['https://example.org/own-1-py3-none-any.whl', []],
    ['git+https://git@example.org/a.git@v1#egg=own', []],
    ['hg+http://example.org/a', []],
    ['git+ssh://git@example.org/a.git', ['warning']],
    ['git+git@example.org:a/b.git', ['warning']],
    ['https://example.org/own-1-cp312-cp312-win_amd64.whl', ['error']],
    ['https://example.org/own-1-cp312-cp312-macosx_11_0_arm64.whl#sha256=0a', ['error']],
  ) as fc.Arbitrary<[string, string[]]>;
  const mark = fc.constantFrom('', ' ; python_version > "3.8"');
  fc.assert(
    fc.property(form, address, mark, (write, [place, levels], marker) => {
      const line = `${write(place)}${marker}`;
      const isMarked = marker !== '' && levels[0] === 'error';
      expect(requirementOf(line)).toMatchObject({ place, isAddress: true });
      expect(found([line], 'code/package-files').map(({ level }) => level)).toEqual(isMarked ? [] : levels);
    }),
  );
});

test.each(['tqdm', 'tqdm==4.0', 'own @ git+https://example.org/a', '-e git+https://example.org/a', '--no-cache-dir'])(
  'the line %s names no file',
  (line) => {
    expect(found([line], 'code/package-files')).toEqual([]);
  },
);

test('law: requirements are read alike in every encoding that pip knows by its mark', () => {
  const lines = fc.array(fc.stringMatching(/^[a-z]{1,8}(==[0-9]\.[0-9])?$/), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(lines, fc.constantFrom('\n', '\r\n'), (wanted, end) => {
      const utf16 = () => Buffer.from(`\uFEFF${wanted.join(end)}${end}`, 'utf16le');
      const utf8 = Buffer.from(`\uFEFF${wanted.join(end)}${end}`);
      for (const bytes of [utf8, utf16(), utf16().swap16()])
        expect(requirementLines(bytes.toString('latin1'))).toEqual(wanted);
    }),
  );
});
