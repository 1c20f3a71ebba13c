import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';
import {
  CLOAK,
  CROWN,
  FIGURE,
  FRAMES,
  type Grade,
  HATS,
  HATS_TOP,
  LOOKS,
  type Look,
  MINI,
  SHEET_HEIGHT,
  SHEET_WIDTH,
  SPECK,
} from '../src/space/page/scene/sheet.ts';

/** One character of a map is one pixel. A full stop shows what is behind it. */
const PALETTE: Readonly<Record<string, string>> = {
  '.': '#000000',
  o: '#2a2340',
  l: CLOAK[0],
  c: CLOAK[1],
  d: CLOAK[2],
  f: '#171226',
  e: '#ffe9a8',
  h: '#f2c6a0',
  t: '#ffcf5a',
  u: '#c9861b',
  w: '#ffffff',
  g: '#8f9cb8',
  k: '#86593a',
  r: '#e4574c',
  a: '#ff9f1c',
  A: CROWN,
};
const COLOURS = Object.keys(PALETTE);

type Part = readonly string[];
/** A part and where its left upper corner stands in the cell. */
type Placed = readonly [part: Part, x: number, y: number];
type Frame = readonly Placed[];
type Frames = readonly [Frame, Frame, Frame, Frame];

const map = (drawing: string): Part => drawing.trim().split(/\s+/);

const HOOD = map(`
  .....oAoo.....
  ...oollccoo...
  ..ollcccccdo..
  .ollccccccddo.
  .olcoooooocdo.
  olcoffffffocdo
  olcoffffffocdo
  olcoffffffocdo
  olcoffffffocdo
  olcoffffffocdo
  .olcoffffocdo.
  ..ooloooodoo..`);
const ROBE = map(`
  ..olccccccdo..
  .olcccccccddo.
  .olccclcccddo.
  olcccclccccddo
  olccclccccdcdo
  .oooooooooooo.`);
const SLUMPED = map(`
  .olccccccccddo.
  olcccclccccddo.
  olccclcccccdddo
  .ooooooooooooo.`);

const EYES = map(`
  e..e
  e..e`);
const EYES_SHUT = map('ee..ee');
const EYES_WIDE = map(`
  ee.ee
  ee.ee`);

const ARM = map(`
  .oooo
  occho
  odcho
  .ooo.`);
const ARM_UP = map(`
  .ooo.
  ohho.
  ohho.
  .occo
  oddco
  oddo.`);
const SPINDLE = map(`
  ...o...
  ..oko..
  .ottto.
  otuttto
  ottutto
  .ottto.
  ..oko..
  ...o...`);
const SPINDLE_TURNED = map(`
  ...o...
  ..oko..
  .ottto.
  ottutto
  otuttto
  .ottto.
  ..oko..
  ...o...`);
const SPINDLE_DOWN = map(`
  ..ooo...
  .otuto..
  okttuko.
  .otuto..
  ..ooo...`);
const THREAD = map(`
  u
  u`);
const TICKET = map(`
  ooooooo
  owwwrwo
  owrwwwo
  owwwrwo
  ooooooo`);
const DOT = map(`
  .oo.
  owwo
  owwo
  .oo.`);
const DOT_FAINT = map(`
  ..
  gg
  ..`);
const HAMMER_UP = map(`
  .ooooo.
  oggggwo
  oggggwo
  .okooo.
  .oko...
  .oko...
  .oko...`);
const HAMMER_DOWN = map(`
  ....ooo.
  oooowgo.
  okkkkgo.
  oooowgo.
  ....ogo.
  ....ooo.`);
const ANVIL = map(`
  ooooooo
  oggggwo
  .ooggo.
  ..ogo..
  .ooggoo
  oooooo.`);
const SPARK = map(`
  a...a
  .a.a.
  ..a..`);
const SPARK_WIDE = map(`
  a..a..a
  .......
  a.....a`);
const SPEECH = map(`
  .ooooooooo.
  owwwwwwwwwo
  owwwwwwwwwo
  owwwwwwwwwo
  owwwwwwwwwo
  owwwwwwwwwo
  .owwoooooo.
  .owo.......
  .oo........`);
const WORDS_1 = map('cc');
const WORDS_2 = map('ccccc');
const WORDS_3 = map(`
  ccccccc
  .......
  ccc....`);
const WORDS_4 = map(`
  ccccccc
  .......
  cccccc.`);
const PAUSE = map(`
  ooo.ooo
  oao.oao
  oao.oao
  oao.oao
  oao.oao
  ooo.ooo`);
const FRAYED = map(`
  u..
  .u.
  u..`);
const Z_LARGE = map(`
  ooooooo
  owwwwwo
  oooowoo
  .oowoo.
  oowoooo
  owwwwwo
  ooooooo`);
const Z_SMALL = map(`
  cccc
  ..c.
  .c..
  cccc`);
const PADLOCK = map(`
  ..ooo..
  .ogggo.
  .ogogo.
  ooooooo
  otttuuo
  ottouuo
  ottouuo
  ooooooo`);
const SCISSORS_OPEN = map(`
  g...g
  gg.gg
  .g.g.
  ..g..
  .r.r.
  r.r.r
  rr.rr`);
const SCISSORS_SHUT = map(`
  ..g..
  ..g..
  ..g..
  ..g..
  .rrr.
  r.r.r
  rr.rr`);

/** A standing figure; `sunk` lowers its head, as breathing out does. */
function standing(sunk: 0 | 1, eyes: Part): Frame {
  const x = eyes === EYES ? 8 : 7;
  return [
    [ROBE, 3, 17],
    [HOOD, 3, 5 + sunk],
    [eyes, x, (eyes === EYES_SHUT ? 12 : 11) + sunk],
  ];
}

const sleeping = (sunk: 0 | 1): Frame => [
  [SLUMPED, 2, 19],
  [HOOD, 3, 8 + sunk],
  [EYES_SHUT, 7, 15 + sunk],
];

const spinning = (spindle: Part, drop: number): Frame => [
  [ARM, 14, 13],
  [THREAD, 18, 16],
  [spindle, 15, 15 + drop],
];

const FIGURES: Readonly<Record<Look, Frames>> = {
  idle: [
    [...standing(0, EYES), ...spinning(SPINDLE, 1)],
    [...standing(0, EYES), ...spinning(SPINDLE, 1)],
    [...standing(1, EYES), ...spinning(SPINDLE, 1)],
    [...standing(1, EYES_SHUT), ...spinning(SPINDLE, 1)],
  ],
  queued: [
    [...standing(0, EYES), [ARM_UP, 15, 9], [TICKET, 14, 4]],
    [...standing(0, EYES), [ARM_UP, 15, 8], [TICKET, 15, 3]],
    [...standing(0, EYES_WIDE), [ARM_UP, 15, 7], [TICKET, 16, 2]],
    [...standing(0, EYES), [ARM_UP, 15, 8], [TICKET, 15, 3]],
  ],
  thinking: [
    [...standing(0, EYES), ...spinning(SPINDLE, 0), [DOT, 13, 1]],
    [...standing(0, EYES), ...spinning(SPINDLE_TURNED, 1), [DOT, 13, 1], [DOT, 16, 1]],
    [...standing(0, EYES), ...spinning(SPINDLE, 1), [DOT, 13, 1], [DOT, 16, 1], [DOT, 19, 1]],
    [...standing(0, EYES_SHUT), ...spinning(SPINDLE_TURNED, 0), [DOT_FAINT, 14, 2]],
  ],
  tool: [
    [...standing(0, EYES), [ANVIL, 17, 17], [ARM_UP, 15, 9], [HAMMER_UP, 15, 3]],
    [...standing(0, EYES), [ANVIL, 17, 17], [ARM_UP, 15, 8], [HAMMER_UP, 15, 2]],
    [...standing(1, EYES_SHUT), [ANVIL, 17, 17], [ARM, 13, 13], [HAMMER_DOWN, 16, 12], [SPARK, 18, 8]],
    [...standing(1, EYES), [ANVIL, 17, 17], [ARM, 13, 13], [HAMMER_DOWN, 16, 12], [SPARK_WIDE, 17, 7]],
  ],
  replying: [
    [...standing(0, EYES), [SPEECH, 13, 1], [WORDS_1, 15, 3]],
    [...standing(0, EYES), [SPEECH, 13, 1], [WORDS_2, 15, 3]],
    [...standing(1, EYES), [SPEECH, 13, 1], [WORDS_3, 15, 3]],
    [...standing(1, EYES_SHUT), [SPEECH, 13, 1], [WORDS_4, 15, 3]],
  ],
  resume_pending: [
    [...standing(1, EYES_SHUT), [ARM, 14, 14], [FRAYED, 18, 17], [SPINDLE_DOWN, 16, 19], [PAUSE, 16, 2]],
    [...standing(1, EYES_SHUT), [ARM, 14, 14], [FRAYED, 18, 17], [SPINDLE_DOWN, 16, 19], [PAUSE, 16, 2]],
    [...standing(1, EYES), [ARM, 14, 14], [FRAYED, 18, 17], [SPINDLE_DOWN, 16, 19], [PAUSE, 16, 1]],
    [...standing(1, EYES), [ARM, 14, 14], [FRAYED, 18, 17], [SPINDLE_DOWN, 16, 19], [PAUSE, 16, 1]],
  ],
  suspended: [
    [...sleeping(0), [PADLOCK, 16, 15]],
    [...sleeping(0), [PADLOCK, 16, 15], [Z_SMALL, 15, 7]],
    [...sleeping(1), [PADLOCK, 16, 15], [Z_SMALL, 15, 7], [Z_LARGE, 17, 0]],
    [...sleeping(1), [PADLOCK, 16, 15], [Z_LARGE, 17, 0]],
  ],
  ending: [
    [...standing(0, EYES), [THREAD, 19, 0], [THREAD, 19, 2], [THREAD, 19, 4], [SCISSORS_OPEN, 17, 6]],
    [...standing(0, EYES), [THREAD, 19, 0], [THREAD, 19, 2], [SCISSORS_SHUT, 17, 5]],
    [...standing(0, EYES_SHUT), [THREAD, 19, 0], [SCISSORS_SHUT, 17, 6], [FRAYED, 18, 14]],
    [...standing(1, EYES_SHUT), [SCISSORS_OPEN, 17, 7], [FRAYED, 18, 19]],
  ],
};

/** Each beside the crown of the head, which is at `HAT_CROWN`. */
const ORNAMENTS: Readonly<Record<(typeof HATS)[number], Frame>> = {
  none: [],
  plume: [
    [
      map(`
      oooo...
      owwwoo.
      oggwwwo
      .oggwwo
      ..oogwo
      ....oo.`),
      6,
      4,
    ],
  ],
  visor: [
    [
      map(`
      ...oooooo...
      .ootttttuoo.
      .ottttttuuo.
      .oooooooooooo`),
      6,
      7,
    ],
  ],
  antenna: [
    [
      map(`
      .ooo.
      orrwo
      orrro
      .ooo.
      ..o..`),
      10,
      4,
    ],
  ],
  clock: [
    [
      map(`
      ..ooo..
      .owwwo.
      owwrwwo
      owwrrwo
      .owwwo.
      ..ooo..`),
      9,
      4,
    ],
  ],
  bow: [
    [
      map(`
      oo...oo
      orroroo
      orrorro
      oroooro
      oo...oo`),
      9,
      5,
    ],
  ],
};

const MINI_BODY = map(`
  .lcd.
  lcccd
  fefef
  lcccd
  lcccd
  cccdd`);
const MINI_BODY_SHUT = map(`
  .lcd.
  lcccd
  fffff
  lcccd
  lcccd
  cccdd`);
const MINI_ASLEEP = map(`
  ..lcd...
  .lcccccd
  lccccccd`);

const mini = (drawing: string, body: Part = MINI_BODY, y = 2): Frame => [
  [body, 0, y],
  [map(drawing), 0, 0],
];

const MINIS: Readonly<Record<Look, Frames>> = {
  idle: [mini('.'), mini('.'), mini('.', MINI_BODY_SHUT), mini('.')],
  queued: [
    mini('........ ........ .....uu. .....uu. .....c.. .....c..'),
    mini('........ .....uu. .....uu. .....c.. .....c..'),
    mini('.....uu. .....uu. .....c.. .....c..'),
    mini('........ .....uu. .....uu. .....c.. .....c..'),
  ],
  thinking: [mini('u.......'), mini('u..u....'), mini('u..u..u.'), mini('........')],
  tool: [
    mini('....ggg. ....ggg. .....k.. .....k..'),
    mini('....ggg. ....ggg. .....k.. .....k..'),
    mini('........ ........ ........ .......g .....kkg .......g'),
    mini('........ .....a.a ........ .......g .....kkg .......g'),
  ],
  replying: [
    mini('....gggg ....gggg .....g..'),
    mini('....gwgg ....gggg .....g..'),
    mini('....gwwg ....gggg .....g..'),
    mini('....gwwg ....gwgg .....g..'),
  ],
  resume_pending: [
    mini('.....a.a .....a.a .....a.a .....a.a', MINI_BODY_SHUT),
    mini('.....a.a .....a.a .....a.a .....a.a', MINI_BODY_SHUT),
    mini('........ .....a.a .....a.a .....a.a', MINI_BODY_SHUT),
    mini('........ .....a.a .....a.a .....a.a', MINI_BODY_SHUT),
  ],
  suspended: [
    mini('.', MINI_ASLEEP, 5),
    mini('........ ........ ........ ....g...', MINI_ASLEEP, 5),
    mini('........ .....gg. .....gg. ....g...', MINI_ASLEEP, 5),
    mini('........ .....gg. .....gg.', MINI_ASLEEP, 5),
  ],
  ending: [
    mini('.....r.r ......r. .....r.r'),
    mini('......r. ......r. ......r.'),
    mini('.....r.r ......r. .....r.r', MINI_BODY_SHUT),
    mini('......r. ......r. ......r.', MINI_BODY_SHUT),
  ],
};

const speck = (drawing: string): Frame => [[map(drawing), 0, 0]];

const SPECKS: Readonly<Record<Look, Frames>> = {
  idle: [speck('.... .lc. .cd.'), speck('.... .lc. .cd.'), speck('.... .lc. .cd. .cd.'), speck('.... .lc. .cd. .cd.')],
  queued: [speck('..u. .lu. .cd.'), speck('..u. .lu. .cd.'), speck('.... .lu. .cd.'), speck('.... .lu. .cd.')],
  thinking: [
    speck('.lc. l..c c..d .cd.'),
    speck('.uc. l..c c..d .cd.'),
    speck('.lc. l..u c..d .cd.'),
    speck('.lc. l..c c..u .ud.'),
  ],
  tool: [speck('.l.. lcc. .d..'), speck('l.c. .c.. c.d.'), speck('.l.. lcc. .d..'), speck('l.c. .c.. c.d.')],
  replying: [speck('lccd cccd .c..'), speck('luud cccd .c..'), speck('luud cuud .c..'), speck('lccd cccd .c..')],
  resume_pending: [speck('a.a. a.a. a.a.'), speck('a.a. a.a. a.a.'), speck('.... a.a. a.a.'), speck('.... a.a. a.a.')],
  suspended: [speck('.... .... lccd'), speck('.... .... lccd'), speck('.... .... .cd.'), speck('.... .... .cd.')],
  ending: [speck('r..r .rr. .rr. r..r'), speck('.... .rr. .rr.'), speck('r..r .rr. .rr. r..r'), speck('.... .rr.')],
};

/** Puts parts over one another into a cell; what stands out of the cell is a slip of the pen. */
function drawCell(sheet: Uint8Array, left: number, top: number, side: number, frame: Frame): void {
  for (const [part, x, y] of frame)
    part.forEach((line, row) => {
      [...line].forEach((char, column) => {
        if (char === '.') return;
        const colour = COLOURS.indexOf(char);
        const inside = x + column >= 0 && x + column < side && y + row >= 0 && y + row < side;
        if (colour < 0 || !inside) throw new Error(`"${line}" at ${x},${y}: ${char} has no place`);
        sheet[(top + y + row) * SHEET_WIDTH + left + x + column] = colour;
      });
    });
}

function drawGrade(sheet: Uint8Array, grade: Grade, looks: Readonly<Record<Look, Frames>>): void {
  LOOKS.forEach((look, row) => {
    for (let frame = 0; frame < FRAMES; frame++)
      drawCell(sheet, grade.left + frame * grade.cell, row * grade.cell, grade.cell, looks[look][frame] ?? []);
  });
}

/** The whole sheet: one byte a pixel, its place in the palette. */
export function drawSheet(): Uint8Array {
  const sheet = new Uint8Array(SHEET_WIDTH * SHEET_HEIGHT);
  drawGrade(sheet, FIGURE, FIGURES);
  drawGrade(sheet, MINI, MINIS);
  drawGrade(sheet, SPECK, SPECKS);
  HATS.forEach((hat, column) => {
    drawCell(sheet, column * FIGURE.cell, HATS_TOP, FIGURE.cell, ORNAMENTS[hat]);
  });
  return sheet;
}

/** Lines of a PNG with four bits a pixel, each begun by its filter: none. */
export function scanlines(sheet: Uint8Array): Buffer {
  const stride = SHEET_WIDTH / 2;
  const lines = Buffer.alloc((stride + 1) * SHEET_HEIGHT);
  sheet.forEach((colour, at) => {
    const x = at % SHEET_WIDTH;
    const place = Math.floor(at / SHEET_WIDTH) * (stride + 1) + 1 + (x >> 1);
    lines[place] = (lines[place] ?? 0) | (x % 2 === 0 ? colour << 4 : colour);
  });
  return lines;
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(named.length + 8);
  framed.writeUInt32BE(data.length, 0);
  named.copy(framed, 4);
  framed.writeUInt32BE(crc32(named), named.length + 4);
  return framed;
}

export function encodePng(sheet: Uint8Array): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(SHEET_WIDTH, 0);
  header.writeUInt32BE(SHEET_HEIGHT, 4);
  // Four bits a pixel, colours from a palette.
  header.set([4, 3], 8);
  const palette = Buffer.from(COLOURS.map((char) => PALETTE[char]?.slice(1)).join(''), 'hex');
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('tRNS', Buffer.from([0])),
    chunk('IDAT', deflateSync(scanlines(sheet), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../src/space/page/scene/sprites.png', import.meta.url), encodePng(drawSheet()));
