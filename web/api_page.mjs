// node web/api_page.mjs [--check]: writes docs/web-api.md from the JSDoc of what the package exports; with --check, only compares.
// Reads the sources with TypeScript's own parser, whose interface is not settled yet: hence the pinned version. SPDX-License-Identifier: BSD-3-Clause
import { readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { SyntaxKind } from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";

const kWeb = dirname(fileURLToPath(import.meta.url));
export const kPage = resolve(kWeb, "../docs/web-api.md");

const kHead = `# The npm package's interface

Everything that \`import ... from "pteryx"\` offers, from the comments in [web/src](../web/src). \`node web/api_page.mjs\` writes this page, and a test
checks that it is up to date. [web/README.md](../web/README.md) has an introduction.
`;

/** What a comment says: its text, and the code of its examples. */
function docOf(node) {
  // A comment's text begins where what stands before it ends.
  return readComment(/\/\*\*[^]*\*\/$/.exec(node.jsDoc?.at(-1)?.getText() ?? "")?.[0].replace(/^[^]*(?=\/\*\*)/, "") ?? "");
}
function readComment(raw) {
  const lines = raw.replace(/^\/\*\*|\*\/$/g, "").split("\n").map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  const [text, ...tags] = lines.join("\n").trim().split(/^@/m);
  const examples = tags.flatMap((tag) => (tag.startsWith("example") ? [tag.slice("example".length).trim()] : []));
  return { text: text.trim().replace(/\n(?!\n)/g, " "), examples };
}

const kKinds = new Map([
  [SyntaxKind.FunctionDeclaration, "function"], [SyntaxKind.ClassDeclaration, "class"], [SyntaxKind.InterfaceDeclaration, "interface"],
  [SyntaxKind.TypeAliasDeclaration, "type"], [SyntaxKind.VariableStatement, "value"],
]);
const nameOf = (node) => (node.kind === SyntaxKind.VariableStatement ? [...node.declarationList.declarations][0].name.text : node.name?.text);
const isExported = (node) => [...(node.modifiers ?? [])].some((modifier) => modifier.kind === SyntaxKind.ExportKeyword);
const oneLine = (text) => text.replace(/\s+/g, " ").trim();

/** The declarations that a module exports by name, followed through `export ... from`. Gives [name, node] in the order of the sources. */
function exportsOf(program, path) {
  const file = program.getSourceFile(path);
  if (!file) throw new Error(`${path} is not in the project`);
  const found = [];
  for (const node of file.statements) {
    if (kKinds.has(node.kind) && isExported(node)) found.push([nameOf(node), node]);
    if (node.kind !== SyntaxKind.ExportDeclaration) continue;
    const inner = exportsOf(program, resolve(dirname(path), node.moduleSpecifier.text.replace(/\.js$/, ".ts")));
    const wanted = node.exportClause && [...node.exportClause.elements].map((element) => element.name.text);
    found.push(...(wanted ? wanted.map((name) => inner.find(([each]) => each === name) ?? [name, null]) : inner));
  }
  return found;
}

/** What a page says of one member, and what it lacks. */
function memberOf(node, owner, problems) {
  const name = node.name?.getText() ?? "";
  const { text } = docOf(node);
  const isIndex = node.kind === SyntaxKind.IndexSignature;
  const shown = isIndex ? oneLine(node.getText()).replace(/^readonly /, "").replace(/\]:.*$/, "]") : name + (node.questionToken ?? node.postfixToken ? "?" : "");
  if (text === "") problems.push(`${owner}.${shown}: has no comment`);
  const isMethod = node.kind === SyntaxKind.MethodSignature || node.kind === SyntaxKind.MethodDeclaration;
  if (isMethod) return { signature: oneLine(node.getText()).replace(/;$/, ""), text };
  return { shown, type: oneLine(node.type?.getText() ?? ""), text };
}

const cell = (text) => text.replaceAll("|", "\\|");
const code = (text) => `\`${text}\``;

function memberTable(members) {
  const properties = members.filter((member) => member.shown !== undefined);
  const methods = members.filter((member) => member.signature !== undefined);
  const table = properties.length === 0 ? "" : `| property | type | |\n|---|---|---|\n${properties.map(({ shown, type, text }) => `| ${code(shown)} | ${code(cell(type))} | ${cell(text)} |`).join("\n")}\n`;
  return [table, ...methods.map(({ signature, text }) => `\`\`\`ts\n${signature}\n\`\`\`\n\n${text}\n`)].filter(Boolean).join("\n");
}

/** Alternatives of a union that have a comment of their own, which stands before the bar. */
function alternatives(node, owner, problems) {
  if (node.type.kind !== SyntaxKind.UnionType) return "";
  const source = node.getSourceFile().text;
  let before = node.name.end;
  const rows = [...node.type.types].map((type) => {
    const comment = /\/\*\*[^]*?\*\//.exec(source.slice(before, type.getStart()))?.[0];
    before = type.end;
    return [type.getText(), comment && readComment(comment).text];
  });
  if (rows.every(([, text]) => !text)) return "";
  for (const [value, text] of rows) if (!text) problems.push(`${owner}: ${value} has no comment`);
  return `| value | |\n|---|---|\n${rows.map(([value, text]) => `| ${code(value)} | ${cell(text ?? "")} |`).join("\n")}\n`;
}

function bodyOf(kind, name, node, problems) {
  const members = (list) => [...list].filter((member) => !["constructor"].includes(member.name?.text)).map((member) => memberOf(member, name, problems));
  switch (kind) {
    case "function":
      return `\`\`\`ts\n${oneLine(node.getText().slice(0, node.body.getStart() - node.getStart())).replace(/^export (async )?function /, "").replace(/(\w+): (\w+) = \{\}/g, "$1?: $2")}\n\`\`\`\n`;
    case "type": {
      const table = alternatives(node, name, problems);
      return table || `\`\`\`ts\ntype ${name} = ${oneLine(node.type.getText()).replace(/^\| /, "")}\n\`\`\`\n`;
    }
    case "value":
      return `\`\`\`ts\nconst ${name}: ${oneLine([...node.declarationList.declarations][0].type?.getText() ?? "")}\n\`\`\`\n`;
    case "class": {
      const maker = [...node.members].find((member) => member.kind === SyntaxKind.Constructor);
      const base = node.heritageClauses ? ` ${[...node.heritageClauses].map((clause) => clause.getText()).join(" ")}` : "";
      const parameters = [...maker.parameters];
      const fields = parameters.filter((parameter) => parameter.modifiers).map((parameter) => memberOf(parameter, name, problems));
      const plain = parameters.map((parameter) => oneLine(parameter.getText()).replace(/\/\*\*.*?\*\/ ?/, "").replace(/^readonly /, "")).join(", ");
      return `\`\`\`ts\nclass ${name}${base}\nnew ${name}(${plain})\n\`\`\`\n\n${memberTable(fields)}`;
    }
    default: {
      const base = node.heritageClauses ? `Has all of ${[...node.heritageClauses].flatMap((clause) => [...clause.types]).map((type) => code(type.getText())).join(" and ")} as well.\n\n` : "";
      return base + memberTable(members(node.members));
    }
  }
}

/** The page, and what is missing in the sources. `folder`: has tsconfig.json and src/index.ts. */
export function makePage(folder = kWeb) {
  const api = new API({ cwd: folder });
  try {
    const { program } = api.updateSnapshot({ openProject: resolve(folder, "tsconfig.json") }).getProjects()[0];
    const problems = [];
    const sections = { function: [], value: [], class: [], type: [] };
    for (const [name, node] of exportsOf(program, resolve(folder, "src/index.ts"))) {
      if (!node) {
        problems.push(`${name}: is exported, but its declaration was not found`);
        continue;
      }
      const kind = kKinds.get(node.kind);
      const { text, examples } = docOf(node);
      if (text === "") problems.push(`${name}: has no comment`);
      const shown = examples.map((example) => `\`\`\`ts\n${example}\n\`\`\`\n`);
      sections[kind === "interface" ? "type" : kind].push([`### ${name}\n`, `${text}\n`, bodyOf(kind, name, node, problems), ...shown].join("\n"));
    }
    const part = (title, list) => `## ${title}\n\n${list.join("\n")}`;
    const text = [kHead, part("Functions", sections.function), part("Values", sections.value), part("Errors", sections.class), part("Types", sections.type)].join("\n");
    return { text, problems };
  } finally {
    api.close();
  }
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { text, problems } = makePage();
  for (const problem of problems) console.error(problem);
  const same = (await readFile(kPage, "utf8").catch(() => "")) === text;
  if (process.argv.includes("--check")) {
    if (!same) console.error(`${kPage} is out of date: run node web/api_page.mjs`);
    if (!same || problems.length > 0) process.exitCode = 1;
  } else {
    await writeFile(kPage, text);
    if (problems.length > 0) process.exitCode = 1;
  }
}
