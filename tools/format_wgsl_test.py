#!/usr/bin/env python3
"""Tests of format_wgsl.py."""
# SPDX-License-Identifier: BSD-3-Clause
import textwrap
import unittest

from format_wgsl import formatted, too_wide


class FormatWgsl(unittest.TestCase):
    def check(self, ugly, good):
        good = textwrap.dedent(good).lstrip("\n")
        self.assertEqual(formatted(textwrap.dedent(ugly).lstrip("\n")), good)
        self.assertEqual(formatted(good), good)

    def test_spaces(self):
        self.check("let a=b+c ;\n", "let a = b+c;\n")  # + may be a sign
        self.check("if(a==b&&c){ return ;}\n", "if (a == b && c) { return; }\n")
        self.check("for ( var i=0u;i<n;i+=4u ) { y[ i ]>>=1u; }\n", "for (var i = 0u; i<n; i += 4u) { y[i] >>= 1u; }\n")
        self.check("fn f(a:array<vec4<u32>>,b : u32)->f32 {}\n", "fn f(a:array<vec4<u32>>, b : u32) -> f32 {}\n")
        self.check("let a = 1; // one\n", "let a = 1;  // one\n")
        self.check("let a = 1;     // lined up\n", "let a = 1;     // lined up\n")

    def test_indentation(self):
        self.check("""
            fn main(a: u32,
              b: u32) {
            if (a) {
                  y = f(
            a,
              b);
               } else { y = g(a,
            b); }
              let z = a +
              b;
            }
            """, """
            fn main(a: u32,
                    b: u32) {
              if (a) {
                y = f(
                    a,
                    b);
              } else { y = g(a,
                             b); }
              let z = a +
                  b;
            }
            """)

    def test_directives(self):
        self.check("""
              #if   fast
            for (;;) {
            #else
            loop {
            #end
            y += 1.0;
            }
            #for i in 0..2
            let a$i = x[$(i * 2)u];
            #end
            """, """
            #if fast
            for (;;) {
            #else
            loop {
            #end
              y += 1.0;
            }
            #for i in 0..2
            let a$i = x[$(i * 2)u];
            #end
            """)

    def test_a_piece_of_a_function(self):
        self.check("// A part of main.\n#option n\n  let a = 1;\nif (a) {\n b = a; }\n", "// A part of main.\n#option n\n  let a = 1;\n  if (a) {\n    b = a; }\n")

    def test_blank_lines(self):
        self.check("\n\nlet a = 1;\n\n\n\nlet b = 2;\n\n", "let a = 1;\n\nlet b = 2;\n")

    def test_width(self):
        self.assertEqual(too_wide("a" * 130 + "\n" + "b" * 131 + "\n"), ["2: 131 characters, expected at most 130"])


if __name__ == "__main__":
    unittest.main()
